// SPDX-License-Identifier: Apache-2.0
// Search over SEARCH_INDEX: sections that have most of the words, headings first. Keys: / to begin,
// arrows and Enter to choose, Escape to leave.
"use strict";
(() => {
  const root = document.body.dataset.root;
  const field = document.getElementById("search");
  const found = document.getElementById("found");
  const rows = SEARCH_INDEX.map((r) => ({ url: r[0], title: r[1], heading: r[2], text: r[3], low: (r[1] + " " + r[2] + " " + r[3]).toLowerCase() }));
  let on = -1;

  // Words that say nothing about a page; a question may be asked as one thinks it.
  const small = new Set(("a about an and are as at be between by can do does for from get give has have how i if in into is it its " +
    "me my not of on or own same should so than that the there they this to use was what when where which who why will with you your").split(" "));
  function wordsOf(text) {
    const all = text.toLowerCase().split(/[^a-z0-9_\-.]+/).map((w) => w.replace(/^[-.]+|[-.]+$/g, "")).filter(Boolean)
      .map((w) => w.length > 3 && w.endsWith("s") ? w.slice(0, -1) : w);
    const rest = all.filter((w) => !small.has(w));
    return rest.length > 0 ? rest : all;
  }
  const starts = (w) => new RegExp("(^|[^a-z0-9_])" + w.replace(/[.\-]/g, "\\$&"), "g");
  // What readers of other manuals type, and what it is called here.
  const same = { resume: ["goes on", "going on", "go on"], embedding: ["encoder"], wandb: ["tensorboard"], cors: ["allow-origin"] };
  // Most words first; a heading counts more than text, a word's beginning more than its inside.
  function score(row, words) {
    const heading = (row.title + " " + row.heading).toLowerCase();
    let sum = 0, hits = 0;
    for (const word of words) {
      const best = Math.max(...[word, ...(same[word] || [])].map((w) => {
        if (!row.low.includes(w)) return 0;
        const begins = (row.low.match(starts(w)) || []).length;
        return (begins > 0 ? 1 : 0.3) + (starts(w).test(heading) ? 10 : heading.includes(w) ? 3 : 0) + Math.min(2 * begins, 8);
      }));
      hits += best > 0;
      sum += best;
    }
    return sum * (hits / words.length) ** 3 * (row.title === "Changelog" ? 0.2 : 1);
  }
  function show() {
    const words = wordsOf(field.value);
    const best = words.length === 0 ? [] :
      rows.map((r) => [score(r, words), r]).filter((x) => x[0] > 0).sort((a, b) => b[0] - a[0]).slice(0, 20);
    found.textContent = "";
    on = -1;
    for (const [, r] of best) {
      const li = document.createElement("li");
      const a = document.createElement("a");
      a.href = root + r.url;
      a.textContent = r.title === r.heading ? r.title : r.title + ": " + r.heading;
      const at = Math.max(0, Math.max(...words.map((w) => r.text.toLowerCase().indexOf(w))) - 60);
      const small = document.createElement("small");
      small.textContent = (at > 0 ? "... " : "") + r.text.slice(at, at + 160).trim() + (r.text.length > at + 160 ? " ..." : "");
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
