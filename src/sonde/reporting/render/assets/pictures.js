// Turn every figure into a picture and leave it in the page as text, for the program that opened the page to read.
(async function () {
  "use strict";
  const NS = "sonde-pictures";
  // plotly names its parts by chance; the same chance each time makes the same file
  function chance(seed) {
    let state = seed;
    return () => {
      state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
      return state / 2 ** 32;
    };
  }
  function leave(id, text) {
    const place = document.createElement("pre");
    place.id = `${NS}-${id}`;
    place.textContent = text;
    document.body.append(place);
  }
  const { format, scale, figures } = JSON.parse(document.getElementById("figures").textContent);
  for (const [k, { data, layout, width }] of figures.entries()) {
    Math.random = chance(1);
    try {
      const options = { format, width, height: layout.height, scale, imageDataOnly: true };
      leave(k, await Plotly.toImage({ data, layout, config: { plotlyServerURL: "" } }, options));
    } catch (error) {
      leave("error", String(error));
      return;
    }
  }
  leave("done", "");
})();
