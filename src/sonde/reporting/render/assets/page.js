// The small things of the page: copying data as JSON.
(function () {
  "use strict";
  function copyByHand(text) {
    const area = document.createElement("textarea");
    area.value = text;
    area.setAttribute("readonly", "");
    area.className = "unseen";
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
  async function copy(text) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch { // a page opened from disk may not be given the clipboard
      return copyByHand(text);
    }
  }
  document.querySelectorAll("[data-copy]").forEach((button) => {
    button.addEventListener("click", async () => {
      const data = JSON.parse(document.getElementById(button.dataset.copy).textContent);
      const done = await copy(JSON.stringify(data, null, 2));
      button.nextElementSibling.textContent = done ? "Copied." : "The browser did not allow copying.";
    });
  });
})();
