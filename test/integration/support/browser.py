# SPDX-License-Identifier: GPL-2.0-or-later
"""Headless Chromium, driven through a pipe by its DevTools protocol: no network, no other package."""
import base64
import json
import os
import re
import select
import shutil
import subprocess
import tempfile
import time

TIMEOUT_S = 120


class Browser:
    """with Browser() as browser: one page, whose errors and requests are kept."""

    def __init__(self, width=1440, height=1000):
        self.size = (width, height)
        self.errors = []  # uncaught ones, and what the policy refused
        self.requests = []  # addresses
        self.last_id = 0
        self.unread = b""

    def __enter__(self):
        self.profile = tempfile.mkdtemp()
        to_read, self.to = os.pipe()
        self.at, to_write = os.pipe()
        # Chromium reads from descriptor 3 and writes to descriptor 4.
        script = 'exec 3<&"$1" 4>&"$2"; shift 2; exec "$@"'
        command = ["chromium", "--headless=new", "--remote-debugging-pipe", "--no-first-run",
                   "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
                   "--force-device-scale-factor=1", f"--user-data-dir={self.profile}", "about:blank"]
        if os.geteuid() == 0:
            command.insert(1, "--no-sandbox")  # Chromium has no sandbox for root
        self.process = subprocess.Popen(
            ["bash", "-c", script, "browser", str(to_read), str(to_write), *command],
            pass_fds=(to_read, to_write), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, start_new_session=True)
        os.close(to_read)
        os.close(to_write)
        self.session = None
        page = self.find_page()
        self.session = self.call("Target.attachToTarget", targetId=page["targetId"],
                                 flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(domain + ".enable")
        self.set_size(*self.size)
        return self

    def __exit__(self, *_):
        try:
            self.session = None
            self.call("Browser.close")
        except (OSError, RuntimeError):
            pass
        os.close(self.to)
        os.close(self.at)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, 9)  # a group of its own
            self.process.wait()
        shutil.rmtree(self.profile, ignore_errors=True)

    def find_page(self):
        """It answers before it has opened its page."""
        deadline = time.monotonic() + TIMEOUT_S
        while time.monotonic() < deadline:
            for target in self.call("Target.getTargets")["targetInfos"]:
                if target["type"] == "page":
                    return target
            time.sleep(0.005)
        raise RuntimeError("the browser opens no page")

    def receive(self, deadline):
        while b"\0" not in self.unread:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.at], [], [], left)[0]:
                raise RuntimeError("the browser does not answer")
            part = os.read(self.at, 1 << 16)
            if not part:
                raise RuntimeError("the browser has ended")
            self.unread += part
        message, self.unread = self.unread.split(b"\0", 1)
        return json.loads(message)

    def note(self, message):
        method, params = message.get("method"), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description", details["text"]))
        elif method == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.errors.append(params["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])

    def call(self, method, **params):
        self.last_id += 1
        message = {"id": self.last_id, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + TIMEOUT_S
        while True:
            answer = self.receive(deadline)
            if answer.get("id") == self.last_id:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            self.note(answer)

    def evaluate(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True,
                           awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def wait_for(self, expression):
        deadline = time.monotonic() + TIMEOUT_S
        while True:
            try:
                if self.evaluate(expression):
                    return
            except RuntimeError as error:
                # The previous page may disappear together with the question.
                if "context" not in str(error) and "navigated" not in str(error):
                    raise
            if time.monotonic() > deadline:
                raise RuntimeError("waited in vain for: " + expression)
            time.sleep(0.005)

    def open(self, path):
        """Returns the seconds until the page is complete and painted."""
        start = time.monotonic()
        self.call("Page.navigate", url="file://" + os.path.abspath(path))
        self.wait_for("document.documentElement?.dataset.ready === 'yes'")
        self.painted()
        return time.monotonic() - start

    def painted(self):
        self.evaluate("new Promise(d => requestAnimationFrame(() => requestAnimationFrame(() => d(1))))")

    def set_size(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=False)
        self.painted()

    def set_dark(self, dark):
        self.call("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.painted()

    def mouse(self, kind, x, y, **more):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def click(self, x, y):
        self.mouse("mouseMoved", x, y)
        self.mouse("mousePressed", x, y, button="left", clickCount=1)
        self.mouse("mouseReleased", x, y, button="left", clickCount=1)
        self.painted()

    def drag(self, x, y, to_x, to_y):
        self.mouse("mouseMoved", x, y)
        self.mouse("mousePressed", x, y, button="left", clickCount=1)
        for i in range(1, 6):
            self.mouse("mouseMoved", x + (to_x - x) * i / 5, y + (to_y - y) * i / 5, button="left",
                       buttons=1)
        self.mouse("mouseReleased", to_x, to_y, button="left", clickCount=1)
        self.painted()

    def key(self, key, text=None):
        params = {"key": key, "code": key}
        codes = {"Enter": 13, "Escape": 27, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39,
                 "ArrowDown": 40}
        if key in codes:
            params["windowsVirtualKeyCode"] = codes[key]
        if text:
            params["text"] = text
        self.call("Input.dispatchKeyEvent", type="keyDown", **params)
        self.call("Input.dispatchKeyEvent", type="keyUp", **params)
        self.painted()

    def type(self, text):
        self.call("Input.insertText", text=text)

    def place(self, selector):
        """x, y, width and height on the screen, after scrolling there."""
        self.evaluate(f"document.querySelector({selector!r}).scrollIntoView({{block: 'center'}})")
        self.painted()
        return self.evaluate(f"(() => {{ const r = document.querySelector({selector!r})"
                             ".getBoundingClientRect(); return [r.x, r.y, r.width, r.height]; })()")

    def screenshot(self, path, whole=False):
        params = {"format": "png"}
        if whole:
            size = self.call("Page.getLayoutMetrics")["cssContentSize"]
            params["captureBeyondViewport"] = True
            params["clip"] = {"x": 0, "y": 0, "width": size["width"], "height": size["height"],
                              "scale": 1}
        data = self.call("Page.captureScreenshot", **params)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))

    def print_pdf(self, path):
        """Returns the number of pages."""
        data = self.call("Page.printToPDF", printBackground=True, preferCSSPageSize=True)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))
        return len(re.findall(rb"/Type /Page\b", base64.b64decode(data)))
