// How numbers, intervals and verdicts are written; the twin of cells.py. Text only ever goes in as textContent.
const cells = (function () {
  "use strict";
  const DASH = "\u2013", MINUS = "\u2212";
  const MARKS = { right: "\u2713", wrong: "\u2717", skipped: DASH };
  const LONG = 240;

  function fixed(value, digits) {
    const [whole, part] = Math.abs(value).toFixed(digits).split(".");
    const grouped = whole.replace(/\B(?=(\d{3})+$)/g, ",");
    const shown = part ? grouped + "." + part : grouped;
    return (value < 0 && /[1-9]/.test(shown) ? MINUS : "") + shown;
  }
  function share(value) {
    if (value > 0 && value < 0.0005) return "<0.1%";
    if (value >= 0.9995 && value < 1 - 1e-12) return ">99.9%";
    return fixed(value * 100, 1) + "%";
  }
  function plainNumber(value) {
    const size = Math.abs(value);
    if (size > 0 && size < 0.0005) {
      return (value < 0 ? MINUS : "") + size.toExponential(1).replace("-", MINUS);
    }
    return fixed(value, size >= 100 ? 0 : size >= 1 ? 2 : 3);
  }
  function number(value, kind) {
    if (value === null) return DASH;
    if (typeof value !== "number") return String(value);
    if (kind === "percent") return share(value);
    if (kind === "points") return (value > 0 ? "+" : "") + fixed(value * 100, 1);
    return kind === "count" ? fixed(value, 0) : plainNumber(value);
  }
  function interval([value, low, high], kind) {
    if (value === null || low === null || high === null) return "";
    const [from, to] = [low, high].map((end) => kind === "percent" ? fixed(end * 100, 1) : number(end, kind));
    return from === to ? "" : `[${from}, ${to}]`;
  }
  function verdict(cell) {
    if (cell === true) return "right";
    if (cell === false) return "wrong";
    return cell === null ? "skipped" : String(cell);
  }

  // What a cell is searched by and what a one-line cell shows.
  function words(cell, kind) {
    if (kind === "verdict") return verdict(cell);
    if (cell === null) return DASH;
    if (Array.isArray(cell)) return `${number(cell[0], kind)} ${interval(cell, kind)}`.trim();
    if (typeof cell === "boolean") return cell ? "yes" : "no";
    return number(cell, kind);
  }

  // What a column sorts by; null sorts last.
  function key(cell, kind) {
    if (kind === "verdict") return verdict(cell);
    return Array.isArray(cell) ? cell[0] : cell;
  }

  const collator = new Intl.Collator("en", { numeric: true, sensitivity: "base" });
  function compare(a, b, direction) {
    if (a === null || b === null) return (a === null) - (b === null);
    if (typeof a === "number" && typeof b === "number") return direction * (a - b);
    return direction * collator.compare(String(a), String(b));
  }

  function span(css, text) {
    const made = document.createElement("span");
    made.className = css;
    made.textContent = text;
    return made;
  }
  function missing() {
    const made = span("missing", DASH);
    made.title = "not measured";
    made.setAttribute("role", "img");
    made.setAttribute("aria-label", "not measured");
    return made;
  }
  function verdictNode(word) {
    const known = Object.hasOwn(MARKS, word);
    const made = span("verdict-" + (known ? word : "other"), "");
    const mark = span("", known ? MARKS[word] : "");
    mark.setAttribute("aria-hidden", "true");
    made.append(mark, (known ? " " : "") + word);
    return made;
  }
  function longNode(text) {
    const made = span("long", text.slice(0, LONG - 40) + "\u2026 ");
    const more = document.createElement("button");
    more.type = "button";
    more.className = "more";
    more.textContent = "more";
    more.addEventListener("click", () => { made.textContent = text; });
    made.append(more);
    return made;
  }
  function node(cell, kind) {
    if (kind === "verdict") return verdictNode(verdict(cell));
    if (cell === null || (Array.isArray(cell) && cell[0] === null)) return missing();
    if (Array.isArray(cell)) {
      const made = document.createDocumentFragment();
      const parts = [["value", number(cell[0], kind)], ["interval", interval(cell, kind)]];
      for (const [css, text] of parts) if (text) made.append(span(css, text), "\n");
      return made;
    }
    const text = words(cell, kind);
    return text.length > LONG ? longNode(text) : document.createTextNode(text);
  }

  return { fixed, verdict, words, key, compare, node };
})();
