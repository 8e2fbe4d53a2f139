#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The page at "/" of `millrace serve` in headless Chromium: what people do with it, by mouse and by keyboard, at the width of
a desk and of a phone, light and dark. Then the search field of the documentation in BUILD/site. Prints TAP; pictures in BUILD/page.
usage: page.py BUILD (from the root; make test-page)"""
import json
import re
import subprocess
import sys
import tempfile
import time
import traceback
import urllib.request
from pathlib import Path

from browser import Browser
from search import test_search

BUILD = Path(sys.argv[1])
MILLRACE, DEMO = BUILD / "millrace", Path("models/demo")
count = failed = 0


def ok(good, name, note=""):
    global count, failed
    count += 1
    failed += not good
    print(f"{'ok' if good else 'not ok'} {count} - {name}" + (f" # {note}" if note else ""), flush=True)


class Server:
    dead = False  # killed by its test

    def __init__(self, *options):
        self.process = subprocess.Popen([MILLRACE, "serve", DEMO, "--port", "0", *options], stdout=subprocess.PIPE, text=True)
        self.url = self.process.stdout.readline().split()[-1]

    def metric(self, name):
        with urllib.request.urlopen(self.url + "/metrics") as r:
            return next(float(line.split()[-1]) for line in r.read().decode().splitlines() if line.startswith(f"millrace_{name} "))

    def ask(self, path, **body):
        request = urllib.request.Request(self.url + path, json.dumps({"model": "demo"} | body).encode(), {"Content-Type": "application/json"})
        with urllib.request.urlopen(request) as r:
            return json.load(r)["choices"][0]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.dead:
            return
        self.process.terminate()
        ok(self.process.wait(timeout=600) == 0, "the server ends with 0")


DONE = "return !document.getElementById('go').disabled && document.getElementById('state').className === ''"
SHOWN = "return [...document.querySelectorAll('#out .tok')].map(s => s.textContent).join('')"
SAID = "return [...document.querySelectorAll('.said.assistant:last-child .tok')].map(s => s.textContent).join('')"


def put(b, **fields):
    for key, value in fields.items():
        b.js("const e = document.getElementById(arguments[0]); e.value = arguments[1]; e.dispatchEvent(new Event('change'))", key, value)


def load(b, url):
    b.open(url)
    b.until("return document.getElementById('model').textContent.startsWith('demo')")


def test_text(b, server, downloads):
    load(b, server.url + "/")
    ok(b.js("return document.getElementById('model').textContent") == "demo · mxint8 · 512 positions · 8 texts at a time · model:sim",
       "text: the head says what writes")
    put(b, temperature="0", max_tokens="24", prompt="And the king said")
    want = server.ask("/v1/completions", prompt="And the king said", max_tokens=24, temperature=0)["text"]
    b.click("#go")
    b.until(DONE)
    ok(b.js(SHOWN) == want, "text: what the API says", repr(want[:40]))
    ok(b.js("return document.querySelector('#out .given').textContent") == "And the king said", "text: behind the prompt")
    ok("24 tokens" in b.js("return document.getElementById('rate-text').textContent"), "text: tokens are counted")
    # Tokens that came in one read have no rate: whatever is shown is one that the device can have.
    rate = re.search(r"([0-9.]+) tokens/s", b.js("return document.getElementById('rate-text').textContent"))
    ok(not rate or float(rate[1]) <= 24 / 0.25, "text: no rate where nothing was measured")
    b.hover("#out .tok:nth-child(4)")
    tip = b.js("const t = document.getElementById('tip'); return t.hidden ? '' : t.textContent")
    ok(" %" in tip and "-" in tip, "text: a token's log-probability on hover", repr(tip[:60]))
    rows = b.js("return document.querySelectorAll('#tip tr').length")
    ok(5 <= rows <= 6, "text: with the others that were probable", f"{rows} rows")
    b.click("#panel-text .save[data-form=json]")
    saved = wait_file(downloads, "*.json")
    data = json.loads(saved.read_text())
    ok(data["prompt"] + data["text"] == "And the king said" + want and len(data["tokens"]) == 24, "text: saved as JSON")
    b.click("#panel-text .save[data-form=txt]")
    ok(wait_file(downloads, "*.txt").read_text() == "And the king said" + want + "\n", "text: saved as text")
    b.click("#keep")
    b.until(DONE)
    more = server.ask("/v1/completions", prompt="And the king said" + want, max_tokens=24, temperature=0)["text"]
    ok(b.js(SHOWN) == want + more, "text: continued")
    put(b, temperature="1", seed="7")
    b.click("#go")
    b.until(DONE)
    first = b.js(SHOWN)
    b.click("#again")
    b.until(DONE)
    again = server.ask("/v1/completions", prompt="And the king said", max_tokens=24, temperature=1, top_p=0.95, seed=8)["text"]
    ok(b.js(SHOWN) == again != first, "text: regenerated with the next seed")
    put(b, seed="", temperature="9")
    b.click("#go")
    ok("Temperature" in b.js("return document.getElementById('alert').textContent"), "text: a number out of range is said by name")
    put(b, temperature="0.8", prompt="word " * 2000)
    b.click("#go")
    b.until(DONE)
    ok("positions" in b.js("return document.getElementById('alert').textContent"), "text: a prompt that is too long is refused")
    ok(b.js(SHOWN) == again, "text: and the text before it stays")
    ok(b.js("return document.getElementById('rate-text').textContent") == "", "text: without the figures before it")
    b.log()  # the refusal
    put(b, prompt="")
    b.click("#go")
    ok(b.js("return document.getElementById('alert').textContent") == "The prompt is empty.", "text: an empty prompt is said")


def test_rate(b):
    """With a server and a clock that keep to a script."""
    want = {"in one read": "60 tokens, first after 0.10 s, ended by its length; prompt 3 tokens",
            "most at first": "50 tokens, 20.0 tokens/s, first after 0.10 s, ended by its length",
            "one by one": "11 tokens, 10.0 tokens/s, first after 0.10 s, ended by its length",
            "ended late": "11 tokens, 10.0 tokens/s, first after 0.10 s, ended by its length; prompt 3 tokens",
            "in two close reads": "60 tokens, first after 0.10 s, ended by its length"}
    shown = dict(b.js("return (async () => {" + (Path(__file__).parent / "rate.js").read_text() + "})()"))
    for what, line in want.items():
        ok(shown.get(what) == line, f"rate: of tokens that come {what}", repr(shown.get(what)))


def until(condition):
    for _ in range(3000):
        if value := condition():
            return value
        time.sleep(0.1)
    return None


def wait_file(directory, pattern):
    return until(lambda: next((f for f in directory.glob(pattern) if f.stat().st_size), None))


def test_stop(b, server):
    """On a slow device, where 500 tokens are not there before anybody can stop them."""
    cancelled = 'sequences_finished_total{reason="cancelled"}'
    before = server.metric(cancelled)
    put(b, prompt="And", max_tokens="500", temperature="1")
    b.click("#go")
    b.until("return document.querySelectorAll('#out .tok').length > 2")
    ok(b.js("return document.activeElement !== document.querySelector('.stop') && !document.querySelector('.stop').disabled"),
       "stop: there while text comes")
    b.click("#panel-text .stop")
    b.until(DONE)
    ok("stopped" in b.js("return document.getElementById('rate-text').textContent"), "stop: ends the text")
    ok(until(lambda: server.metric(cancelled) > before), "stop: and the work of the device")


def test_keyboard(b, server):
    load(b, server.url + "/")
    put(b, temperature="0", max_tokens="8")
    b.js("document.activeElement.blur(); window.scrollTo(0, 0)")
    order = []
    for _ in range(12):
        b.keys("tab")
        order.append(b.js("return document.activeElement.id || document.activeElement.className"))
    ok(order[:3] == ["tab-text", "prompt", "go"], "keyboard: the order of the focus is that of the page", " ".join(order))
    ok(b.js("const e = document.getElementById('prompt'); e.focus(); return getComputedStyle(e).outlineStyle") == "solid",
       "keyboard: the focus is seen")
    put(b, prompt="In the beginning")
    b.keys("enter", holding=["control"])
    b.until("return document.querySelectorAll('#out .tok').length > 7")
    b.until(DONE)
    ok(b.js("return document.querySelectorAll('#out .tok').length") == 8, "keyboard: Ctrl+Enter generates")
    b.js("document.getElementById('out').focus()")
    b.keys("right", "right", "right")
    at = b.js("return [...document.querySelectorAll('#out .tok')].findIndex(s => s.classList.contains('at'))")
    ok(at == 2 and not b.js("return document.getElementById('tip').hidden"), "keyboard: arrows go from token to token", f"at {at}")
    b.js("document.getElementById('tab-text').focus()")
    b.keys("right")
    ok(not b.js("return document.getElementById('panel-chat').hidden"), "keyboard: arrows change the tab")
    put(b, max_tokens="500", temperature="1")
    b.js("document.getElementById('say').focus()")
    b.type("Hail")
    b.keys("enter")
    b.until("return document.querySelectorAll('#talk .tok').length > 2 || !document.getElementById('send').disabled")
    b.keys("escape")
    b.until(DONE)
    ok(b.js("return document.querySelector('.said.user').lastChild.textContent") == "Hail", "keyboard: Enter sends, Esc stops")


def test_chat(b, server, downloads):
    load(b, server.url + "/")
    b.click("#tab-chat")
    put(b, temperature="0", max_tokens="20", seed="")
    ask = {"max_tokens": 20, "temperature": 0, "top_p": 0.95}
    talk = [{"role": "user", "content": "Who art thou?"}]
    b.js("document.getElementById('say').focus()")
    b.type("Who art thou?")
    b.keys("enter")
    b.until("return document.querySelectorAll('.said.assistant').length === 1")
    b.until(DONE)
    want = server.ask("/v1/chat/completions", messages=talk, **ask)["message"]["content"]
    ok(b.js(SAID) == want, "chat: what the API says", repr(want[:40]))
    talk += [{"role": "assistant", "content": want}, {"role": "user", "content": "<b>And</b> then?"}]
    put(b, preamble="A talk of two.")
    b.js("document.getElementById('say').focus()")
    b.type("<b>And</b> then?")
    b.click("#send")
    b.until("return document.querySelectorAll('.said.assistant').length === 2")
    b.until(DONE)
    want = server.ask("/v1/chat/completions", messages=[{"role": "system", "content": "A talk of two."}] + talk, **ask)["message"]["content"]
    ok(b.js(SAID) == want, "chat: with what was said and the preamble")
    ok(b.js("return document.querySelectorAll('#talk b').length") == 0, "chat: markup is text")
    put(b, temperature="1")
    b.click("#retry")
    b.until(DONE)
    ok(b.js("return document.querySelectorAll('.said').length") == 4 and b.js(SAID) != want, "chat: regenerated")
    b.click("#panel-chat .save[data-form=md]")
    ok("**You:** Who art thou?" in wait_file(downloads, "*.md").read_text(), "chat: saved as Markdown")
    b.click("#panel-chat .save[data-form=json]")
    saved = json.loads(wait_file(downloads, "millrace-chat-*.json").read_text())
    ok([m["role"] for m in saved["messages"]] == ["user", "assistant"] * 2, "chat: saved as JSON")
    put(b, preamble="", temperature="0.8")


def test_new_conversation(b):
    b.click("#tab-chat")
    b.click("#clear")
    ok(b.js("return document.getElementById('talk').children.length") == 0, "chat: a new conversation")


def test_layout(b, pictures):
    b.click("#tab-text")
    put(b, prompt="In the beginning", max_tokens="60", temperature="1")
    b.click("#go")
    b.until("return document.querySelectorAll('#out .tok').length > 0")
    b.until(DONE)
    for name, width, height in [("desk", 1280, 900), ("phone", 390, 844)]:
        b.size(width, height)
        for scheme in "light", "dark":
            b.scheme(scheme)
            for tab in "text", "chat":
                b.click(f"#tab-{tab}")
                b.js("window.scrollTo(0, 0)")
                b.picture(pictures / f"{tab}-{name}-{scheme}.png")
                bad = b.js(CONTRAST)
                ok(not bad, f"layout: contrast of {tab}, {name}, {scheme}", "; ".join(bad[:4]))
        ok(b.js("return document.documentElement.scrollWidth") <= width, f"layout: nothing is wider than the {name}")
        b.js("window.scrollTo(0, document.body.scrollHeight)")
        b.picture(pictures / f"end-{name}.png")
    small = b.js("return [...document.querySelectorAll('button')].filter(e => e.offsetParent && e.getBoundingClientRect().height < 40).map(e => e.textContent)")
    ok(not small, "layout: buttons are large enough for a thumb", " ".join(small))
    b.size(1280, 900)
    b.scheme("light")
    b.js("for (const d of document.querySelectorAll('details')) d.open = true")
    nameless = []
    for tab in "text", "chat":
        b.click(f"#tab-{tab}")
        for e in b.all("main input, main textarea, main button, aside input, aside textarea, aside select, [role]"):
            if b.js("return arguments[0].offsetParent !== null && !/status|alert/.test(arguments[0].getAttribute('role'))",
                    {"element-6066-11e4-a52e-4f735466cecf": e}) and not b.name(e):
                nameless.append(b.js("return arguments[0].outerHTML.slice(0, 60)", {"element-6066-11e4-a52e-4f735466cecf": e}))
    ok(not nameless, "layout: everything has a name for a screen reader", " ".join(nameless[:3]))


# Text whose contrast with what is behind it is below 4.5 : 1 (WCAG 2, AA); disabled buttons may be fainter.
CONTRAST = """
const parse = c => c.match(/[0-9.]+/g).map(Number);
const light = ([r, g, b]) => { const f = x => (x /= 255) <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4;
  return 0.2126 * f(r) + 0.7152 * f(g) + 0.0722 * f(b); };
const behind = e => { for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor);
  if (c.length < 4 || c[3] > 0) return c; } return [255, 255, 255]; };
const bad = [];
for (const e of document.querySelectorAll('body *')) {
  if (!e.offsetParent || e.disabled || ![...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim())) continue;
  const a = light(parse(getComputedStyle(e).color)), b = light(behind(e));
  const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  if (ratio < 4.5) bad.push(`${e.tagName} ${e.id || e.className} '${e.textContent.slice(0, 20)}' ${ratio.toFixed(2)}`);
}
return bad;
"""


def test_safety(b):
    b.log()
    b.js("""const s = document.createElement('script');
            try { s.textContent = 'window.inline = 1'; document.body.append(s); } catch { }
            try { document.body.insertAdjacentHTML('beforeend', '<img src=x onerror="window.handler = 1">'); } catch { }
            fetch('http://127.0.0.2:1/').catch(() => { window.elsewhere = 'refused'; });""")
    b.until("return window.elsewhere")
    ok(b.js("return window.inline === undefined && window.handler === undefined"), "policy: no script but the page's own runs")
    ok(any("Content Security Policy" in e["message"] for e in b.log()), "policy: and the browser says why")


def test_engine(b, pictures):
    with Server("-d", "sim:tiny,units=2") as server:
        load(b, server.url + "/")
        ok(b.js("return document.getElementById('timeline').hidden") is False or
           b.until("return !document.getElementById('timeline').hidden"), "engine: counters are shown")
        ok(b.js("return document.getElementById('unit').length") == 3, "engine: all units together, and each")
        put(b, prompt="And the king said", max_tokens="40", temperature="0")
        b.click("#go")
        b.until("return document.querySelectorAll('#shares tr').length === 5")
        rows = b.js("return [...document.querySelectorAll('#shares tr')].map(r => [...r.querySelectorAll('td')].map(c => parseFloat(c.textContent)))")
        ok(all(98 < sum(r) < 102 for r in rows), "engine: the shares of a unit add up", str(rows[:2]))
        ok(rows[1][0] > 5, "engine: the array is busy", f"{rows[1][0]} %")  # how much depends on what falls into a second
        busy = b.js("""const c = document.getElementById('picture'), d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
                       let n = 0; for (let i = 0; i < d.length; i += 4) n += d[i] === 0x0b && d[i + 1] === 0x72 && d[i + 2] === 0x85; return n;""")
        ok(busy > 20, "engine: the timeline is drawn", f"{busy} busy pixels")
        ok("array" in b.js("return document.getElementById('picture').getAttribute('aria-label')"), "engine: and said in words")
        b.until(DONE)
        b.js("window.scrollTo(0, 0)")
        b.picture(pictures / "engine.png")
        test_stop(b, server)
        ok("Cycles" in b.js("return document.getElementById('figures').textContent"), "engine: cycles are counted")
        put(b, prompt="And", max_tokens="500", temperature="1")
        b.click("#go")
        b.until("const t = document.getElementById('rate-text').textContent; return t.includes('tokens/s') && t")
        ok(True, "engine: tokens that take their time have a rate")
        server.process.kill()
        b.until("return document.getElementById('state').className === 'lost'")
        gone = "lost connection to " + server.url.split("/")[2]
        ok(b.js("return document.getElementById('alert').textContent") == gone, "a server that dies in a text is named")
        ok(b.until("return document.getElementById('figures').textContent === ''"), "and its figures go")
        b.log()
        server.dead = True


def test_key(b, work):
    (work / "key").write_text("sesame\n")
    with Server("-d", "model:", "--api-key-file", str(work / "key")) as server:
        b.open(server.url + "/")
        b.until("return !document.getElementById('key-row').hidden")
        ok("key" in b.js("return document.getElementById('alert').textContent"), "key: asked for")
        b.js("document.getElementById('key').focus()")
        b.type("sesame")
        b.keys("enter")
        b.until("return document.getElementById('model').textContent")
        ok(b.js("return document.getElementById('key-row').hidden"), "key: taken")
        b.log()  # the refusals
    b.until("return document.getElementById('state').className === 'lost'")
    ok(b.js("return document.getElementById('state').textContent") == "lost connection to " + server.url.split("/")[2], "a server that has gone is noticed")
    b.log()


def main():
    pictures = BUILD.absolute() / "page"
    pictures.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as tmp:
        work = Path(tmp)
        downloads = work / "downloads"
        downloads.mkdir()
        browser = Browser(downloads)
        try:
            browser.size(1280, 900)
            with Server("-d", "model:") as server:
                test_text(browser, server, downloads)
                test_rate(browser)
                test_keyboard(browser, server)
                test_chat(browser, server, downloads)
                test_layout(browser, pictures)
                test_new_conversation(browser)
                complaints = browser.log()
                ok(not complaints, "the console is empty", str(complaints[:2]))
                test_safety(browser)
            test_engine(browser, pictures)
            test_key(browser, work)
            browser.size(1280, 900)
            test_search(browser, ok, BUILD / "site", pictures)
        except Exception:
            traceback.print_exc()
            ok(False, "the test has come to its end")
        finally:
            browser.close()
    print(f"1..{count}")
    return failed > 0


sys.exit(main())
