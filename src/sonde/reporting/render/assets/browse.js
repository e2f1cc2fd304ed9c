// A long table: search, filter by verdict, sort, and 50 rows at a time, 10 on a phone. Knows nothing of what the rows mean.
(function () {
  "use strict";
  const PAGE = window.matchMedia("(max-width: 60rem)").matches ? 10 : 50, PAUSE = 150;

  function make(name, attributes, ...children) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  }
  // Accents and case do not matter in a search.
  function fold(text) {
    return text.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase();
  }
  function debounced(act) {
    let timer;
    return () => { clearTimeout(timer); timer = setTimeout(act, PAUSE); };
  }

  // the values of a column: as they are, or words that come again by their numbers
  function column({ title, kind, values, names, codes }) {
    return { title, kind, values: values || codes.map((code) => names[code]) };
  }

  function browse(root, id, data) {
    const columns = data.columns.map(column), all = Array.from({ length: data.count }, (_, i) => i);
    const body = root.querySelector("tbody");
    const heads = [...root.querySelectorAll("thead th")];
    const state = { words: [], verdicts: new Map(), column: -1, direction: 0, page: 0 };
    let order = all, found = order, folded = null;

    function haystack(i) {
      folded ??= all.map((k) => fold(columns.map(({ kind, values }) => cells.words(values[k], kind)).join("\n")));
      return folded[i];
    }
    function matches(i) {
      for (const [c, word] of state.verdicts) if (cells.verdict(columns[c].values[i]) !== word) return false;
      return state.words.every((word) => haystack(i).includes(word));
    }
    function sortRows() {
      order = all;
      if (!state.direction) return;
      const { kind, values } = columns[state.column];
      const keys = values.map((value) => cells.key(value, kind));
      order = [...all].sort((a, b) => cells.compare(keys[a], keys[b], state.direction) || a - b);
    }
    function refresh() {
      found = state.words.length || state.verdicts.size ? order.filter(matches) : order;
      state.page = 0;
      draw();
    }

    function cellNode(cell, c) {
      const { title, kind } = columns[c];
      const unbroken = typeof cell === "string" && /\S{25}/.test(cell); // may wrap inside a word
      const made = make("td", { class: unbroken ? `${kind} unbroken` : kind, role: "cell", "data-label": title });
      made.append(make("div", {}, cells.node(cell, kind)));
      return made;
    }
    function draw() {
      const start = state.page * PAGE, shown = found.slice(start, start + PAGE);
      body.replaceChildren(...shown.map((i) => make("tr", { role: "row" }, ...columns.map(({ values }, c) => cellNode(values[i], c)))));
      if (!shown.length) {
        const none = make("td", { colspan: columns.length, class: "none" }, "No rows match.");
        body.replaceChildren(make("tr", { role: "row" }, none));
      }
      describe(start, shown.length);
    }
    function describe(start, count) {
      const n = (value) => cells.fixed(value, 0);
      const of = found.length === all.length ? n(all.length) : `${n(found.length)} found (of ${n(all.length)})`;
      root.querySelector(".range").textContent = count ? `Rows ${n(start + 1)}\u2013${n(start + count)} of ${of}` : `No rows found (of ${n(all.length)})`;
      const last = lastPage();
      pager.first.disabled = pager.previous.disabled = state.page === 0;
      pager.next.disabled = pager.last.disabled = state.page >= last;
      pager.input.value = state.page + 1;
      pager.input.max = last + 1;
      pager.total.textContent = ` of ${n(last + 1)}`;
    }
    function lastPage() {
      return Math.max(0, Math.ceil(found.length / PAGE) - 1);
    }
    function turnTo(page) {
      state.page = Math.min(Math.max(0, page || 0), lastPage());
      draw();
      if (root.getBoundingClientRect().top < 0) root.scrollIntoView({ block: "start" });
    }

    function makePager() {
      const button = (label, text, act) => {
        const made = make("button", { type: "button", "aria-label": label }, text);
        made.addEventListener("click", act);
        return made;
      };
      const first = button("First page", "\u00ab First", () => turnTo(0));
      const previous = button("Previous page", "\u2039 Previous", () => turnTo(state.page - 1));
      const next = button("Next page", "Next \u203a", () => turnTo(state.page + 1));
      const last = button("Last page", "Last \u00bb", () => turnTo(lastPage()));
      const input = make("input", { type: "number", min: 1, "aria-label": "Page" });
      input.addEventListener("change", () => turnTo(Number(input.value) - 1));
      const total = make("span", {});
      root.querySelector(".pager").append(first, previous, make("span", { class: "where" }, "Page ", input, total), next, last);
      return { first, previous, next, last, input, total };
    }
    function makeSearch() {
      const input = make("input", { type: "search", autocomplete: "off", spellcheck: "false", placeholder: "any words, in any column" });
      input.addEventListener("input", debounced(() => {
        state.words = fold(input.value).split(/\s+/).filter(Boolean);
        refresh();
      }));
      return make("label", { class: "search" }, make("span", {}, "Search"), input);
    }
    function makeFilter(column, c) {
      const counts = new Map();
      for (const value of column.values) counts.set(cells.verdict(value), (counts.get(cells.verdict(value)) || 0) + 1);
      const usual = ["right", "wrong", "skipped"];
      const rank = (word) => (usual.indexOf(word) + 1 || usual.length + 1);
      const names = [...counts.keys()].sort((a, b) => rank(a) - rank(b) || cells.compare(a, b, 1));
      const group = make("fieldset", { class: "filter" }, make("legend", {}, column.title));
      const option = (word, text, count) => {
        const input = make("input", { type: "radio", name: `filter-${id}-${c}`, value: word });
        input.checked = word === "";
        input.addEventListener("change", () => {
          if (word === "") state.verdicts.delete(c); else state.verdicts.set(c, word);
          refresh();
        });
        return make("label", {}, input, make("span", {}, text, " ", make("small", {}, cells.fixed(count, 0))));
      };
      group.append(make("div", {}, option("", "all", all.length), ...names.map((word) => option(word, word, counts.get(word)))));
      return group;
    }
    function sortBy(c) {
      state.direction = state.column !== c ? 1 : state.direction === 1 ? -1 : state.direction === -1 ? 0 : 1;
      state.column = c;
      const said = { 1: "ascending", "-1": "descending", 0: "none" }[state.direction];
      heads.forEach((head, k) => head.setAttribute("aria-sort", k === c ? said : "none"));
      sortRows();
      refresh();
    }

    const pager = makePager();
    const controls = root.querySelector(".controls");
    controls.append(makeSearch());
    columns.forEach((column, c) => { if (column.kind === "verdict") controls.append(makeFilter(column, c)); });
    heads.forEach((head, c) => head.querySelector("button").addEventListener("click", () => sortBy(c)));
    // narrow screens lay the rows out as blocks, which would lose the table for screen readers
    root.querySelector("table").setAttribute("role", "table");
    body.setAttribute("role", "rowgroup");
    draw();
  }

  // one after the other, so that the page can be read meanwhile; what is folded away when it is opened
  (async () => {
    for (const [id, root] of document.querySelectorAll("[data-browse]").entries()) {
      const start = async () => browse(root, id, await unpacked(root)), folded = root.closest("details:not([open])");
      if (folded) folded.addEventListener("toggle", start, { once: true });
      else await start();
    }
  })();
})();
