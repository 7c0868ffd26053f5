"""A real browser without a window, driven by its DevTools protocol: Debian's chromium, or Chrome.

https://chromedevtools.github.io/devtools-protocol/ describes the messages.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import websocket

NAMES = ("chromium", "chromium-browser", "google-chrome")
STARTUP_S = 60


def find_browser() -> str | None:
    """The path of the first browser that is there."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Page:
    """One tab. What the page says on the console and what it asks of the network is kept."""

    def __init__(self, url: str) -> None:
        self._socket = websocket.create_connection(url, timeout=60, suppress_origin=True)
        self._count = 0
        self.complaints: list[str] = []  # errors and warnings of the console, and exceptions
        self.requests: list[str] = []  # beyond the page itself
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._count += 1
        self._socket.send(json.dumps({"id": self._count, "method": method, "params": parameters}))
        while True:
            message = json.loads(self._socket.recv())
            if message.get("id") == self._count:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']['message']}")
                return dict(message["result"])
            self._hear(message)

    def _hear(self, message: dict[str, Any]) -> None:
        method, parameters = message.get("method"), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(parameters["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "warning", "assert"):
            self.complaints.append(json.dumps(parameters["args"]))
        elif method == "Log.entryAdded" and parameters["entry"]["level"] in ("error", "warning"):
            self.complaints.append(parameters["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])

    def open(self, path: Path) -> None:
        """Loads the file and waits until it is there."""
        self.complaints.clear()
        self.requests.clear()
        url = path.resolve().as_uri()
        self.call("Page.navigate", url=url)
        while self.run("document.URL") != url or self.run("document.readyState") != "complete":
            time.sleep(0.02)
        self.requests = [request for request in self.requests if request != url]

    def resize(self, width: int, height: int = 900) -> None:
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 500)

    def prefer(self, scheme: str) -> None:
        """``light`` or ``dark``."""
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def run(self, script: str) -> Any:
        """The value of a JavaScript expression."""
        outcome = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in outcome:
            raise RuntimeError(json.dumps(outcome["exceptionDetails"]))
        return outcome["result"].get("value")

    def move_to(self, x: float, y: float) -> None:
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def screenshot(self, path: Path) -> None:
        """The whole page as PNG."""
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)["data"]
        path.write_bytes(base64.b64decode(data))


@contextmanager
def open_browser(browser: str) -> Iterator[Page]:
    """One tab of a fresh browser, which ends with the block."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        arguments = ["--headless=new", "--remote-debugging-port=0", f"--user-data-dir={profile}", "--no-first-run"]
        arguments += ["--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking", "--hide-scrollbars"]
        if os.geteuid() == 0:
            arguments.append("--no-sandbox")  # it can't have one as root
        process = subprocess.Popen([browser, *arguments, "about:blank"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            port, _ = _read_port(process, Path(profile) / "DevToolsActivePort")
            page = Page(_tab_url(port))
            yield page
            page._socket.close()
        finally:
            process.terminate()
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _read_port(process: subprocess.Popen[bytes], file: Path) -> tuple[int, str]:
    end = time.monotonic() + STARTUP_S
    while time.monotonic() < end:
        lines = file.read_text().splitlines() if file.exists() else []
        if len(lines) == 2:
            return int(lines[0]), lines[1]
        if process.poll() is not None:
            raise RuntimeError(f"the browser ended with status {process.returncode} before it listened")
        time.sleep(0.05)
    raise RuntimeError(f"the browser did not listen within {STARTUP_S} s")


def _tab_url(port: int) -> str:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # no proxy stands between us and this machine
    with opener.open(f"http://127.0.0.1:{port}/json/list", timeout=30) as answer:
        tabs = json.load(answer)
    return str(next(tab["webSocketDebuggerUrl"] for tab in tabs if tab["type"] == "page"))
