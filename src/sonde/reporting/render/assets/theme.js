// Light or dark: the reader's choice if there is one, else the system's. Runs before the first paint.
(function () {
  "use strict";
  const root = document.documentElement;
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  const KEY = "sonde-theme";

  function remembered() {
    try { return localStorage.getItem(KEY); } catch { return null; } // storage may be closed to files
  }
  function remember(theme) {
    try { localStorage.setItem(KEY, theme); } catch { /* then it lasts as long as the page */ }
  }
  function current() {
    return root.dataset.theme || (system.matches ? "dark" : "light");
  }
  function announce() {
    document.dispatchEvent(new Event("themechange"));
  }
  function apply(theme) {
    root.dataset.theme = theme;
    announce();
  }

  const chosen = remembered();
  if (chosen === "light" || chosen === "dark") root.dataset.theme = chosen;
  system.addEventListener("change", announce);

  document.addEventListener("DOMContentLoaded", () => {
    const button = document.getElementById("theme");
    const label = () => {
      button.textContent = current() === "dark" ? "Light theme" : "Dark theme";
    };
    document.addEventListener("themechange", label);
    label();
    button.addEventListener("click", () => {
      const next = current() === "dark" ? "light" : "dark";
      remember(next);
      apply(next);
    });
  });

  // paper is light, whatever the screen was
  let before;
  window.addEventListener("beforeprint", () => { before = root.dataset.theme; apply("light"); });
  window.addEventListener("afterprint", () => {
    if (before) { apply(before); } else { delete root.dataset.theme; announce(); }
  });
})();
