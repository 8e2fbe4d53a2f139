// SPDX-License-Identifier: Apache-2.0
// The rate that the page shows, with a server and a clock that keep to a script: what comes when. Runs in the page (page.py);
// returns the lines that it shows for each stream: [what, line].
const given = { fetch: window.fetch, now: performance.now };
let time = 0;
const token = n => ({ choices: [{ text: " a".repeat(n), logprobs: { tokens: Array(n).fill(" a"), token_logprobs: Array(n).fill(-1) } }] });
const over = { choices: [{ text: "", finish_reason: "length" }] }, used = { choices: [], usage: { prompt_tokens: 3 } };
// Reads: [milliseconds, events..]; a number of tokens stands for its event.
const streams = {
  "in one read": [[100, ...Array(60).fill(1), over, used, "[DONE]"]],
  "most at first": [[100, ...Array(40).fill(1)], [600, ...Array(10).fill(1)], [600, over, "[DONE]"]],
  "one by one": [...Array(11).keys()].map(i => [100 * (i + 1), 1]).concat([[1100, over, "[DONE]"]]),
  "ended late": [...Array(11).keys()].map(i => [100 * (i + 1), 1]).concat([[9000, over, used, "[DONE]"]]),
  "in two close reads": [[100, 30], [110, 30], [110, over, "[DONE]"]],
};
const line = o => `data: ${o === "[DONE]" ? o : JSON.stringify(typeof o === "number" ? token(o) : o)}\n\n`;
const body = reads => ({ getReader: () => ({ read: async () => {
  const [at, ...what] = reads.shift();
  time = at;
  return { done: false, value: new TextEncoder().encode(what.map(line).join("")) };
} }) });
const shown = [];
performance.now = () => time;
try {
  for (const [what, reads] of Object.entries(streams)) {
    time = 0;
    window.fetch = async () => ({ ok: true, body: body(reads) });
    const rate = document.createElement("span");
    await run("/v1/completions", {}, rate, () => {});
    shown.push([what, rate.textContent]);
  }
} finally {
  window.fetch = given.fetch;
  performance.now = given.now;
}
return shown;
