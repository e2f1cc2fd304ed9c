// Draw the figures with plotly, in the page's own colours, again whenever the theme or the width changes.
(function () {
  "use strict";
  const NARROW = 640;
  const config = { responsive: true, displaylogo: false, showTips: false, plotlyServerURL: "", modeBarButtons: [["toImage"]], toImageButtonOptions: { format: "svg" } };

  function palette() {
    const style = getComputedStyle(document.documentElement);
    const get = (name) => style.getPropertyValue(name).trim();
    const inks = [1, 2, 3, 4, 5].map((k) => get(`--ink-${k}`));
    return { inks, ink: get("--text"), muted: get("--muted"), rule: get("--rule"), zero: get("--strong-rule"), paper: get("--paper"), font: get("--sans") };
  }
  function themedTrace(trace, colours) {
    const ink = trace.meta && colours.inks[trace.meta.ink];
    if (!ink) return;
    if (trace.marker) trace.marker.color = ink;
    if (trace.line) trace.line.color = ink;
    if (trace.error_x) trace.error_x.color = ink;
    if (trace.error_y) trace.error_y.color = ink;
  }
  function themed(spec, width) {
    const { data, layout } = structuredClone(spec), colours = palette();
    layout.font = { ...layout.font, color: colours.ink, family: colours.font, size: width < NARROW ? 11 : 13 };
    for (const axis of [layout.xaxis, layout.yaxis]) {
      if (axis) Object.assign(axis, { gridcolor: colours.rule, zerolinecolor: colours.zero });
    }
    layout.hoverlabel = { ...layout.hoverlabel, bgcolor: colours.paper, bordercolor: colours.zero, font: { color: colours.ink, family: colours.font } };
    layout.modebar = { bgcolor: "rgba(0,0,0,0)", color: colours.muted, activecolor: colours.ink };
    for (const note of layout.annotations || []) note.font = { ...note.font, color: colours.muted };
    if (width < NARROW && layout.meta && layout.meta.narrow) {
      layout.yaxis.ticktext = layout.meta.narrow.ticktext;
      layout.xaxis.nticks = 5;
    }
    data.forEach((trace) => themedTrace(trace, colours));
    return { data, layout };
  }

  const figures = [...document.querySelectorAll("[data-figure]")].map((root) => ({
    canvas: root.querySelector(".plot"),
    spec: JSON.parse(root.querySelector("script").textContent),
  }));
  function drawAll() {
    for (const { canvas, spec } of figures) {
      const { data, layout } = themed(spec, canvas.clientWidth);
      Plotly.react(canvas, data, layout, config);
    }
  }
  if (!figures.length) return;
  let narrow = window.innerWidth < NARROW;
  window.addEventListener("resize", () => {
    if (narrow === (narrow = window.innerWidth < NARROW)) return; // plotly follows the width itself
    drawAll();
  });
  document.addEventListener("themechange", drawAll);
  drawAll();
})();
