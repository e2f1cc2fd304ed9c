// Draw the figures with plotly, in the page's own colours, again whenever the theme or the width changes.
(function () {
  "use strict";
  const NARROW = 640;
  const config = { responsive: true, displaylogo: false, showTips: false, plotlyServerURL: "", modeBarButtons: [["toImage"]], toImageButtonOptions: { format: "svg" } };

  function palette() {
    const style = getComputedStyle(document.documentElement);
    const get = (name) => style.getPropertyValue(name).trim();
    const scale = (name) => get(name).split(",").map((colour, k, all) => [k / (all.length - 1), colour.trim()]);
    return {
      inks: [1, 2, 3, 4, 5].map((k) => get(`--ink-${k}`)),
      scales: { sequential: scale("--scale"), diverging: scale("--scale-about-zero") },
      ink: get("--text"), muted: get("--muted"), rule: get("--rule"), zero: get("--strong-rule"), paper: get("--paper"), font: get("--sans"),
    };
  }
  // a trace says which ink it wants by number, or "muted"
  function inkOf(wish, colours) {
    return typeof wish === "number" ? colours.inks[wish % colours.inks.length] : colours[wish];
  }
  function themedTrace(trace, colours) {
    const { ink: wish, whisker, scale } = trace.meta || {}, ink = inkOf(wish, colours);
    if (scale) trace.colorscale = colours.scales[scale];
    if (trace.colorbar) trace.colorbar.tickfont = { color: colours.muted };
    if (!ink) return;
    if (trace.marker) trace.marker.color = ink;
    if (trace.marker && trace.marker.pattern) trace.marker.pattern.fgcolor = colours.paper;
    if (trace.line) trace.line.color = ink;
    for (const bars of [trace.error_x, trace.error_y]) if (bars) bars.color = whisker ? colours[whisker] : ink;
  }
  // what changes on a phone: values by dotted path
  function put(object, changes) {
    for (const [path, value] of Object.entries(changes || {})) {
      const steps = path.split("."), last = steps.pop();
      steps.reduce((inner, step) => (inner[step] = inner[step] || {}), object)[last] = structuredClone(value);
    }
  }
  // a legend that takes more rows here than was thought makes the figure taller, not its body smaller
  function legendRoom(layout, width, narrow) {
    const { entries, width: entry, row, room } = layout.meta.legend;
    const more = Math.ceil(entries / Math.max(1, Math.floor(width / entry))) * row - room[narrow ? "narrow" : "wide"];
    layout.height += more;
    layout.margin.t += more;
  }
  function themed(spec, page, width) {
    const { data, layout } = structuredClone(spec), colours = palette(), narrow = page < NARROW;
    if (narrow) for (const part of [layout, ...data]) put(part, part.meta && part.meta.narrow);
    if (layout.meta && layout.meta.legend) legendRoom(layout, width, narrow);
    layout.font = { ...layout.font, color: colours.ink, family: colours.font, size: narrow ? 11 : 13 };
    for (const axis of [layout.xaxis, layout.yaxis]) {
      if (axis) Object.assign(axis, { gridcolor: colours.rule, zerolinecolor: colours.zero });
    }
    layout.hoverlabel = { ...layout.hoverlabel, bgcolor: colours.paper, bordercolor: colours.zero, font: { color: colours.ink, family: colours.font } };
    layout.modebar = { bgcolor: "rgba(0,0,0,0)", color: colours.muted, activecolor: colours.ink };
    for (const note of layout.annotations || []) {
      note.font = { ...note.font, color: colours.muted };
      if (note.bgcolor) note.bgcolor = colours.paper;
    }
    for (const shape of layout.shapes || []) shape.line.color = colours.ink;
    data.forEach((trace) => themedTrace(trace, colours));
    return { data, layout };
  }

  const figures = [...document.querySelectorAll("[data-figure]")].map((root) => ({
    root,
    canvas: root.querySelector(".plot"),
    spec: JSON.parse(root.querySelector("script").textContent),
  }));
  function drawAll() {
    for (const { root, canvas, spec } of figures) {
      const { data, layout } = themed(spec, root.clientWidth, canvas.clientWidth);
      canvas.style.height = `${layout.height}px`;
      Plotly.react(canvas, data, layout, config);
    }
  }
  if (!figures.length) return;
  let before = window.innerWidth;
  window.addEventListener("resize", () => {
    if (before !== (before = window.innerWidth)) drawAll(); // a phone's bars come and go: not its width
  });
  document.addEventListener("themechange", drawAll);
  drawAll();
})();
