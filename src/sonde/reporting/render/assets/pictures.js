// Turn every drawing into a picture and leave it in the page as text, for the program that opened the page to read.
(async function () {
  "use strict";
  const TALLEST = 16000; // pixels that a browser can still paint
  function leave(id, text) {
    const place = document.createElement("pre");
    place.id = `sonde-pictures-${id}`;
    place.textContent = text;
    document.body.append(place);
  }
  async function painted(drawing, scale) {
    const image = new Image();
    image.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(drawing);
    await image.decode();
    const canvas = document.createElement("canvas"), tall = image.naturalHeight;
    const factor = Math.min(scale, TALLEST / tall);
    canvas.width = image.naturalWidth * factor;
    canvas.height = tall * factor;
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    return canvas.toDataURL("image/png");
  }
  const { scale, pictures } = JSON.parse(document.getElementById("pictures").textContent);
  try {
    for (const [k, drawing] of pictures.entries()) leave(k, await painted(drawing, scale));
    leave("done", "");
  } catch (error) {
    leave("error", String(error));
  }
})();
