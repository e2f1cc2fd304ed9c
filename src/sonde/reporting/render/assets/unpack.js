// Data that the page holds as deflated JSON in base64.
async function unpacked(root) {
  "use strict";
  const letters = atob(root.querySelector("[data-packed]").textContent);
  const bytes = Uint8Array.from(letters, (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
}
