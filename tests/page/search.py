# SPDX-License-Identifier: Apache-2.0
"""The search field of `make docs` in headless Chromium: what strangers ask, by keyboard, from pages at both depths."""
from urllib.parse import urldefrag

# What people type, and the section that must stand first.
ASKED = {
    "Which board should I buy?": "docs/use/faq.html#which-board-should-i-buy",
    "how much memory does gpt-j-6b need": "docs/use/faq.html#how-much-memory-and-disk-does-gpt-j-6b-need",
    "what happens when the device hangs": "docs/use/faq.html#what-happens-when-the-device-hangs",
    "RTL and C model differ": "docs/inside/testing.html#when-rtl-and-c-model-differ",
    "resume training": "docs/train/options.html#training-a-model",
    "embeddings": "docs/use/bert.html#encoders-bert-minilm-bge-e5",
    "wandb": "docs/train/train-config.html#keys",
    "glossary": "docs/glossary.html#glossary",
}
HITS = "return [...document.querySelectorAll('#found a')].map(a => a.href)"
FIELD = "return document.getElementById('search').value"


def ask(b, text):
    """Types it in place of what stood there; the addresses that were found, the best first."""
    b.js("const f = document.getElementById('search'); f.focus(); f.select()")
    b.type(text)
    return b.js(HITS)


def test_search(b, ok, site, pictures):
    home = site.absolute().as_uri()
    b.log()
    b.open(f"{home}/index.html")
    for question, answer in ASKED.items():
        hits = ask(b, question)
        ok(hits[:1] == [f"{home}/{answer}"], f"search: {question}", str(hits[:2]))
    b.picture(pictures / "search.png")
    ok(len(ask(b, "engine")) == 20, "search: twenty hits at most")
    ok(ask(b, "engin")[:1] != [] and ask(b, "engines")[:1] == ask(b, "engine")[:1], "search: the beginning of a word, and its plural")
    ok(ask(b, "zxqj") == [] and b.js("return document.getElementById('found').textContent") == "Nothing found", "search: nothing is said")
    ok(ask(b, "(.*[") == [] and ask(b, "<b>x\\") is not None, "search: signs are no patterns")
    ok(b.js("return document.querySelector('#found b')") is None, "search: what is typed is text")

    # By keyboard, and a page below docs/.
    b.keys("escape")
    ok(b.js("return document.getElementById('found').hidden") and b.js(FIELD) == "", "search: Escape leaves")
    b.open(f"{home}/docs/glossary.html")
    b.keys("/")
    ok(b.js("return document.activeElement.id") == "search" and b.js(FIELD) == "", "search: / goes to the field")
    question, answer = next(iter(ASKED.items()))
    b.type(question)
    ok(b.js(HITS)[:1] == [f"{home}/{answer}"], "search: the same from a page below")
    second = b.js(HITS)[1]
    b.keys("down", "down", "up", "down")
    ok(b.js("return document.querySelector('li.on a').href") == second, "search: arrows choose")
    b.keys("enter")
    b.until("return location.href === arguments[0] && document.readyState === 'complete'", second)
    ok(b.js("return document.getElementById(location.hash.slice(1)) !== null"), "search: Enter opens the section that was chosen")

    # Every address of the index is a place on a page.
    urls = b.js("return SEARCH_INDEX.map(r => r[0])")
    pages = {page: (site / page).read_text() for page in {urldefrag(u).url for u in urls}}
    lost = [u for u in urls if f'id="{urldefrag(u).fragment}"' not in pages[urldefrag(u).url]]
    ok(urls and not lost, "search: every section that can be found is there", str(lost[:3]))
    complaints = b.log()
    ok(not complaints, "search: the console is empty", str(complaints[:2]))
