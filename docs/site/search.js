// SPDX-License-Identifier: Apache-2.0
// Search over SEARCH_INDEX: all words must occur; headings count more than text. Keys: / to begin,
// arrows and Enter to choose, Escape to leave.
"use strict";
(() => {
  const root = document.body.dataset.root;
  const field = document.getElementById("search");
  const found = document.getElementById("found");
  const rows = SEARCH_INDEX.map((r) => ({ url: r[0], title: r[1], heading: r[2], text: r[3], low: (r[1] + " " + r[2] + " " + r[3]).toLowerCase() }));
  let on = -1;

  function score(row, words) {
    const heading = (row.title + " " + row.heading).toLowerCase();
    let sum = 0;
    for (const w of words) {
      if (!row.low.includes(w)) return 0;
      sum += 1 + (heading.includes(w) ? 10 : 0) + Math.min(row.low.split(w).length - 1, 5);
    }
    return sum;
  }
  function show() {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    const best = words.length === 0 ? [] :
      rows.map((r) => [score(r, words), r]).filter((x) => x[0] > 0).sort((a, b) => b[0] - a[0]).slice(0, 20);
    found.textContent = "";
    on = -1;
    for (const [, r] of best) {
      const li = document.createElement("li");
      const a = document.createElement("a");
      a.href = root + r.url;
      a.textContent = r.title === r.heading ? r.title : r.title + ": " + r.heading;
      const at = Math.max(0, r.text.toLowerCase().indexOf(words[0]) - 60);
      const small = document.createElement("small");
      small.textContent = (at > 0 ? "... " : "") + r.text.slice(at, at + 160).trim() + " ...";
      li.append(a, small);
      found.append(li);
    }
    if (words.length > 0 && best.length === 0) {
      const li = document.createElement("li");
      li.textContent = "Nothing found";
      found.append(li);
    }
    found.hidden = words.length === 0;
  }
  function move(step) {
    const items = found.children;
    if (on >= 0) items[on].classList.remove("on");
    on = Math.max(0, Math.min(items.length - 1, on + step));
    items[on].classList.add("on");
    items[on].scrollIntoView({ block: "nearest" });
  }
  field.addEventListener("input", show);
  field.addEventListener("keydown", (e) => {
    if (e.key === "ArrowDown" || e.key === "ArrowUp") { if (found.children.length) move(e.key === "ArrowDown" ? 1 : -1); e.preventDefault(); }
    else if (e.key === "Enter") { const a = found.querySelector(on >= 0 ? "li.on a" : "a"); if (a) location.href = a.href; }
    else if (e.key === "Escape") { field.value = ""; show(); field.blur(); }
  });
  document.addEventListener("keydown", (e) => {
    if (e.key === "/" && document.activeElement !== field) { field.focus(); e.preventDefault(); }
  });
  found.addEventListener("click", () => { found.hidden = true; });
})();
