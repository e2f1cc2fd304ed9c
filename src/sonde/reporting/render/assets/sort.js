// Click a heading to sort a table that is written out in the page.
(function () {
  "use strict";
  function key(cell, kind) {
    const value = cell.dataset.key ?? cell.textContent;
    if (value === "") return null;
    const number = Number(value);
    return kind === "text" || kind === "verdict" || Number.isNaN(number) ? value : number;
  }
  function sortable(table) {
    const body = table.tBodies[0], original = [...body.rows];
    const heads = [...table.querySelectorAll("thead th")];
    heads.forEach((head) => {
      head.querySelector("button").addEventListener("click", () => {
        const next = { none: "ascending", ascending: "descending", descending: "none" }[head.getAttribute("aria-sort")];
        heads.forEach((other) => other.setAttribute("aria-sort", other === head ? next : "none"));
        const direction = { ascending: 1, descending: -1, none: 0 }[next];
        const rows = [...original], c = head.cellIndex, kind = head.dataset.kind;
        if (direction) rows.sort((a, b) => cells.compare(key(a.cells[c], kind), key(b.cells[c], kind), direction));
        body.append(...rows);
      });
    });
  }
  document.querySelectorAll("table[data-sortable]").forEach(sortable);
})();
