# SPDX-License-Identifier: Apache-2.0
"""Headless Chromium by WebDriver: chromedriver listens on 127.0.0.1, on a port that it chooses itself. Standard library only."""
import base64
import json
import re
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
KEYS = {"enter": "\ue007", "tab": "\ue004", "escape": "\ue00c", "right": "\ue014", "left": "\ue012", "control": "\ue009",
        "shift": "\ue008", "home": "\ue011", "up": "\ue013", "down": "\ue015"}
ARGUMENTS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
             "--disable-component-update", "--disable-sync"]


class Browser:
    def __init__(self, downloads):
        self.profile = tempfile.TemporaryDirectory()
        self.driver = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.session = None
        try:
            for line in self.driver.stdout:
                if port := re.search(r"started successfully on port (\d+)", line):
                    break
            self.base = f"http://127.0.0.1:{port.group(1)}"
            options = {"args": ARGUMENTS + [f"--user-data-dir={self.profile.name}"],
                       "prefs": {"download.default_directory": str(downloads), "download.prompt_for_download": False}}
            self.session = self._call("POST", "/session", {"capabilities": {"alwaysMatch": {
                "goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}}})["sessionId"]
        except BaseException:
            self.close()
            raise

    def close(self):
        if self.session:
            self._call("DELETE", f"/session/{self.session}")
        self.driver.terminate()
        self.driver.wait()
        self.profile.cleanup()

    def _call(self, method, path, body=None):
        request = urllib.request.Request(self.base + path, method=method, headers={"Content-Type": "application/json"},
                                         data=None if body is None else json.dumps(body).encode())
        try:
            with urllib.request.urlopen(request, timeout=300) as reply:
                return json.load(reply)["value"]
        except urllib.error.HTTPError as e:
            raise RuntimeError(json.load(e)["value"]["message"].splitlines()[0]) from e

    def _do(self, method, path, body=None):
        return self._call(method, f"/session/{self.session}{path}", body)

    def open(self, url):
        self._do("POST", "/url", {"url": url})

    def js(self, code, *args):
        return self._do("POST", "/execute/sync", {"script": code, "args": list(args)})

    def cdp(self, command, **parameters):
        return self._do("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def find(self, selector):
        return self._do("POST", "/element", {"using": "css selector", "value": selector})[ELEMENT]

    def all(self, selector):
        return [e[ELEMENT] for e in self._do("POST", "/elements", {"using": "css selector", "value": selector})]

    def click(self, selector):
        self._do("POST", f"/element/{self.find(selector)}/click", {})

    def name(self, element):
        """The name that a screen reader says."""
        return self._do("GET", f"/element/{element}/computedlabel")

    def keys(self, *keys, holding=()):
        """To whatever has the focus."""
        down = [{"type": "keyDown", "value": KEYS[k]} for k in holding]
        press = [{"type": t, "value": KEYS.get(k, k)} for k in keys for t in ("keyDown", "keyUp")]
        up = [{"type": "keyUp", "value": KEYS[k]} for k in reversed(holding)]
        self._do("POST", "/actions", {"actions": [{"type": "key", "id": "keyboard", "actions": down + press + up}]})

    def type(self, text):
        self.keys(*text)

    def hover(self, selector):
        self._do("POST", "/actions", {"actions": [{"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": [
            {"type": "pointerMove", "duration": 0, "x": 0, "y": 0, "origin": {ELEMENT: self.find(selector)}}]}]})

    def size(self, width, height):
        self.cdp("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)

    def scheme(self, name):
        self.cdp("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name}])

    def picture(self, path):
        path.write_bytes(base64.b64decode(self._do("GET", "/screenshot")))

    def log(self):
        """What the console has got since the last call: complaints only."""
        return [e for e in self._do("POST", "/se/log", {"type": "browser"}) if e["level"] in ("SEVERE", "WARNING")]

    def until(self, code, *args):
        """Waits for a condition, for as long as it takes a very slow machine."""
        for _ in range(3000):
            if value := self.js(code, *args):
                return value
            time.sleep(0.1)
        raise RuntimeError(f"waited in vain for: {code}")
