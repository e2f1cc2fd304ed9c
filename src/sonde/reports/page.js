// The table of facts: search, filter by outcome, sort, pages of rows, one fact in depth. State is in the URL.
(async function () {
  "use strict";
  const root = document.documentElement, button = document.getElementById("theme");
  const isDark = () => (root.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  const nameTheme = () => { button.textContent = isDark() ? "Light theme" : "Dark theme"; };
  button.hidden = false;
  button.addEventListener("click", () => { root.dataset.theme = isDark() ? "light" : "dark"; nameTheme(); });
  nameTheme();
  addEventListener("beforeprint", () => { for (const fold of document.querySelectorAll("details")) fold.open = true; });

  const browser = document.getElementById("browser");
  if (!browser) return;
  const source = document.getElementById("data").textContent, bytes = () => Uint8Array.from(atob(source), (c) => c.charCodeAt(0));
  const data = JSON.parse(source.startsWith("{") ? source : await new Response(new Blob([bytes()]).stream().pipeThrough(new DecompressionStream("deflate"))).text());
  const { ids, columns, filters, outcome, models, deep, prompts, total, noun } = data, all = outcome.map((_, i) => i), shownOf = new Map(deep.map((i) => [i, []]));
  (prompts.row ?? []).forEach((place, p) => shownOf.get(deep[place]).push(p));
  const PAGE = matchMedia("(max-width: 820px)").matches ? 15 : 25, PRINTED = 500;
  const $ = (selector) => browser.querySelector(selector), body = $("tbody"), input = $("input");
  const fold = (text) => String(text ?? "").normalize("NFD").replace(/\p{M}/gu, "").toLowerCase();
  const count = (n) => n.toLocaleString("en-US", { maximumFractionDigits: 1 });
  const percent = (p) => (p === null ? "–" : p > 0 && p < 0.0005 ? "<0.1%" : (p * 100).toFixed(1) + "%");
  const isNumber = (column) => !["text", "answer"].includes(column.unit);
  const saved = new URLSearchParams(location.hash.slice(1));
  const state = { q: saved.get("q") || "", show: +(saved.get("show") ?? data.start), sort: +(saved.get("sort") ?? -1), up: saved.get("up") !== "0", page: 0, size: PAGE, open: saved.get("fact"), seek: saved.has("fact") };
  if (!filters[state.show]) state.show = data.start;
  if (!columns[state.sort]) state.sort = -1;
  const haystack = all.map((i) => fold(columns.map((c) => c.values[i]).join("\n")));

  function make(name, css, ...children) {
    const node = document.createElement(name);
    if (css) node.className = css;
    node.append(...children);
    return node;
  }
  function mark(value) { // 1 correct, 0 incorrect, null excluded, in between: some prompts
    const css = value === null ? "none" : value === 1 ? "right" : value === 0 ? "wrong" : "some";
    return make("span", css, value === null ? "–" : value === 1 ? "✓" : value === 0 ? "✗" : "~");
  }
  function show(column, value) {
    if (value === null) return "–";
    switch (column.unit) {
      case "percent": return percent(value);
      case "share": return `${value[0]} of ${value[1]}`;
      case "count": return count(value);
      case "number": return value.toFixed(3);
      case "verdict": return value ? "✓" : "✗";
      default: return String(value);
    }
  }
  function cell(column, i, k) {
    const value = column.values[i], answer = column.unit === "answer";
    const node = make("td", isNumber(column) ? "number" : answer ? "answer" : k ? "" : "first");
    node.dataset.label = answer && models.length < 2 ? "" : column.label; // on a phone
    node.append(make("div", "", ...(answer ? [mark(column.marks[i]), make("span", "", value === "" ? "(empty)" : value ?? (column.marks[i] === null ? "excluded" : "–"))] : [show(column, value)])));
    return node;
  }
  function key(column, i) {
    const value = column.values[i];
    return Array.isArray(value) ? value[0] / value[1] : typeof value === "string" ? fold(value) : value;
  }
  function depth(i) {
    if (!shownOf.has(i)) {
      const other = make("td", "deep", "The prompts of this fact are not on the page: ", make("code", "", data.command.replace(/FACT$/, () => `'${ids[i].replaceAll("'", "'\\''")}'`)));
      other.colSpan = columns.length;
      return make("tr", "depth", other);
    }
    const texts = new Map();
    for (const p of shownOf.get(i)) texts.set(prompts.text[p], [...(texts.get(prompts.text[p]) ?? []), p]);
    const list = [...texts].map(([text, places]) => make("div", "", make("h4", "", text), make("div", "runs", ...places.map((p) => {
      const [correct, rank, goldP] = ["correct", "rank", "gold_prob"].map((name) => prompts[name][p]);
      const top = (prompts.answer[p] ?? []).map((name, k) => [name, prompts.probability[p][k], prompts.gold[p][k]]);
      const shown = top.some(([, , gold]) => gold) || goldP === null ? top : [...top, ["gold answer", goldP, true]];
      const rows = shown.map(([name, share, gold]) => {
        const row = make("tr", gold ? "gold" : "", make("th", "", name));
        if (share !== null) {
          const bar = make("div", "bar1");
          bar.style.width = `${Math.max(share * 100, 0.5)}%`;
          row.append(make("td", "", bar), make("td", "number", percent(share)));
        }
        return row;
      });
      const verdict = `${models.length > 1 ? models[prompts.model[p]] + ": " : ""}${correct === null ? "not graded" : correct ? "correct" : "incorrect"}${rank ? `, gold answer at rank ${count(rank)}` : ""}`;
      return make("div", "", make("div", "note", mark(correct === null ? null : +correct), verdict), make("table", "top", ...rows));
    }))));
    const node = make("td", models.length > 1 ? "deep pairs" : "deep", make("div", "", ...(list.length ? list : ["There is no prompt to show."])));
    node.colSpan = columns.length;
    return make("tr", "depth", node);
  }

  function draw() {
    const words = fold(state.q).split(/\s+/).filter(Boolean);
    const found = all.filter((i) => filters[state.show][1].includes(outcome[i]) && words.every((w) => haystack[i].includes(w)));
    if (state.sort >= 0) {
      const keys = all.map((i) => key(columns[state.sort], i)), sign = state.up ? 1 : -1;
      found.sort((a, b) => (keys[a] === null) - (keys[b] === null) || sign * (keys[a] < keys[b] ? -1 : keys[a] > keys[b] ? 1 : 0) || a - b);
    }
    if (state.seek) state.page = Math.floor(Math.max(0, found.indexOf(ids.indexOf(state.open))) / state.size); // a link to a fact
    const last = Math.max(0, Math.ceil(found.length / state.size) - 1);
    state.page = Math.min(state.page, last);
    const start = state.page * state.size, rows = found.slice(start, start + state.size);
    body.replaceChildren(...rows.flatMap((i) => {
      const row = make("tr", "fact", ...columns.map((c, k) => cell(c, i, k))), opened = state.open === ids[i];
      row.tabIndex = 0;
      row.setAttribute("aria-expanded", opened);
      row.classList.toggle("open", opened);
      const toggle = () => { state.open = opened ? null : ids[i]; draw(); };
      row.addEventListener("click", () => { if (!String(getSelection())) toggle(); });
      row.addEventListener("keydown", (e) => {
        if (e.key !== "Enter") return;
        toggle();
        body.querySelectorAll("tr.fact")[rows.indexOf(i)].focus();
      });
      return opened ? [row, depth(i)] : [row];
    }));
    $(".range").textContent = found.length ? `${count(start + 1)} to ${count(start + rows.length)} of ${count(found.length)} ${noun}${state.size === PRINTED && last ? `; ${count(found.length - rows.length)} are not printed` : ""}` : "No fact matches.";
    [...$(".chips").children].forEach((chip, k) => chip.setAttribute("aria-pressed", state.show === k));
    $(".heads").querySelectorAll("th").forEach((th, k) => th.setAttribute("aria-sort", state.sort !== k ? "none" : state.up ? "ascending" : "descending"));
    const step = (text, by) => { const b = make("button", "", text); b.disabled = state.page + by < 0 || state.page + by > last; b.addEventListener("click", () => { state.page += by; draw(); }); return b; };
    $(".pager").replaceChildren(...(last ? [step("Previous", -1), `Page ${state.page + 1} of ${last + 1}`, step("Next", 1)] : []));
    const hash = new URLSearchParams({ ...(state.q && { q: state.q }), ...(state.show !== data.start && { show: state.show }), ...(state.sort >= 0 && { sort: state.sort, up: +state.up }), ...(state.open && { fact: state.open }) });
    try { if (String(hash) || saved.size) history.replaceState(null, "", `#${hash}`); } catch { /* a page within a notebook has no address */ }
  }

  $("thead").append(make("tr", "heads", ...columns.map((column, k) => {
    const sort = make("button", "", column.label), th = make("th", isNumber(column) ? "number" : "", sort);
    sort.addEventListener("click", () => { state.up = state.sort === k ? !state.up : true; state.sort = k; draw(); });
    return th;
  })));
  $(".chips").append(...filters.map(([label, of], k) => {
    const n = outcome.filter((o) => of.includes(o)).length, chip = make("button", "", `${label} ${count(n)}`);
    chip.hidden = !n;
    chip.addEventListener("click", () => { state.show = k; state.page = 0; draw(); });
    return chip;
  }));
  addEventListener("beforeprint", () => { state.size = PRINTED; state.page = 0; draw(); });
  addEventListener("afterprint", () => { state.size = PAGE; draw(); });
  if (ids.length < total) $(".help").append(` The page has a random sample of ${count(ids.length)} of ${count(total)} ${noun}.`);
  if (deep.length < ids.length) $(".help").append(` It has ${count(prompts.row?.length ?? 0)} prompts, those of ${count(deep.length)} ${noun}. The prompts of any other fact: `, make("code", "", data.command));
  input.value = state.q;
  input.addEventListener("input", () => { state.q = input.value; state.page = 0; draw(); });
  draw();
  if (state.seek) body.querySelector(".open")?.scrollIntoView({ block: "center" });
  state.seek = false;
})();
