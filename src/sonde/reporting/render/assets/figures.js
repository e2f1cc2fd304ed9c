// Point at a figure to read what is there, walk through its points with the arrow keys, click a name to hide its series, save it.
(function () {
  "use strict";
  const NEAR = 14; // pixels from which the pointer reaches a point
  const tip = document.createElement("div");
  tip.className = "tip";
  tip.setAttribute("role", "status");

  // a point as the middle and the half sides of what it covers
  function placed(point) {
    const { x, y, width, height } = point.getBBox();
    return { point, x: x + width / 2, y: y + height / 2, w: width / 2, h: height / 2 };
  }
  function distance(place, x, y) {
    return Math.hypot(Math.max(0, Math.abs(x - place.x) - place.w), Math.max(0, Math.abs(y - place.y) - place.h));
  }
  function nearest(places, x, y) {
    let best = null, least = NEAR, middle = Infinity;
    for (const place of places) {
      const far = distance(place, x, y), from = Math.hypot(x - place.x, y - place.y);
      if (far > least || (far === least && from >= middle) || place.point.parentNode.classList.contains("off")) continue;
      [best, least, middle] = [place, far, from];
    }
    return best;
  }
  function describe(words) {
    const [first, ...rest] = words.split("\n");
    const strong = document.createElement("strong");
    strong.textContent = first;
    tip.replaceChildren(strong, ...rest.map((line) => Object.assign(document.createElement("div"), { textContent: line })));
  }

  function lively(root) {
    const plot = root.querySelector(".plot");
    const drawings = [...plot.querySelectorAll("svg")].map((svg) => ({ svg, points: [...svg.querySelectorAll(".points > *")], places: null }));
    let shown = null, tips = null;
    unpacked(root).then((found) => { tips = found; });

    function current() {
      const drawing = drawings.find(({ svg }) => svg.clientWidth > 0);
      drawing.places ??= drawing.points.map(placed);
      return drawing;
    }
    function show(drawing, place) {
      if (shown) shown.point.classList.remove("on");
      shown = place;
      if (!place || !tips) { tip.remove(); return; }
      place.point.classList.add("on");
      describe(tips[drawing.points.indexOf(place.point)]);
      document.body.append(tip);
      const box = place.point.getBoundingClientRect(), room = document.documentElement.clientWidth;
      const left = Math.min(Math.max(8, box.left + box.width / 2 - tip.offsetWidth / 2), room - tip.offsetWidth - 8);
      const above = box.top - tip.offsetHeight - 8;
      tip.style.left = `${left + window.scrollX}px`;
      tip.style.top = `${(above > 0 ? above : box.bottom + 8) + window.scrollY}px`;
    }
    function point(event) {
      const drawing = current();
      const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(drawing.svg.getScreenCTM().inverse());
      const place = nearest(drawing.places, at.x, at.y);
      if (place !== shown) show(drawing, place);
    }
    function walk(event) {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (event.key === "Escape") show(null, null);
      if (!step) return;
      const drawing = current(), seen = drawing.places.filter(({ point }) => !point.parentNode.classList.contains("off"));
      if (!seen.length) return;
      event.preventDefault();
      const from = seen.indexOf(shown);
      show(drawing, seen[from < 0 ? 0 : (from + step + seen.length) % seen.length]);
    }
    function toggle(entry) {
      const k = entry.dataset.entry, off = !entry.classList.contains("off");
      plot.querySelectorAll(`[data-entry="${k}"], [data-series="${k}"]`).forEach((part) => part.classList.toggle("off", off));
    }

    plot.addEventListener("pointermove", point);
    plot.addEventListener("pointerdown", point);
    plot.addEventListener("pointerleave", () => show(null, null));
    plot.addEventListener("blur", () => show(null, null));
    plot.addEventListener("keydown", walk);
    plot.addEventListener("click", (event) => {
      const entry = event.target.closest("[data-entry]");
      if (entry) toggle(entry);
    });
  }

  // a copy that stands alone: the colours of the theme, as they are now, on the page's paper
  function alone(svg) {
    const copy = svg.cloneNode(true), paper = document.createElementNS(svg.namespaceURI, "rect");
    const own = [svg, ...svg.querySelectorAll("*")], made = [copy, ...copy.querySelectorAll("*")];
    for (const [k, part] of made.entries()) {
      for (const name of ["fill", "stroke"]) if (part.hasAttribute(name)) part.setAttribute(name, getComputedStyle(own[k])[name]);
    }
    for (const [name, value] of Object.entries({ width: "100%", height: "100%", fill: getComputedStyle(document.body).backgroundColor })) paper.setAttribute(name, value);
    copy.prepend(paper);
    return new XMLSerializer().serializeToString(copy);
  }
  function save(button) {
    const drawing = new Blob([alone(button.closest("figure").querySelector(".wide"))], { type: "image/svg+xml" });
    const link = Object.assign(document.createElement("a"), { href: URL.createObjectURL(drawing), download: button.dataset.save });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }

  document.querySelectorAll("[data-figure]").forEach(lively);
  document.querySelectorAll("[data-save]").forEach((button) => button.addEventListener("click", () => save(button)));
})();
