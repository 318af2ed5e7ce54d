"""A real browser for tests: Chromium without a window, spoken to over two pipes (its DevTools protocol, as JSON between
null bytes: --remote-debugging-pipe)."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import debian

OPTIONS = (
    "--headless",
    "--disable-gpu",
    "--hide-scrollbars",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-extensions",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--remote-debugging-pipe",
)
_SECONDS = 120.0
# As a shell does, for a child whose descriptors Python would close: commands come in on 3, answers go out on 4.
_PLUMBING = """import fcntl, os, sys
commands, answers = (fcntl.fcntl(int(word), fcntl.F_DUPFD, 10) for word in sys.argv[1:3])
os.dup2(commands, 3)
os.dup2(answers, 4)
os.execv(sys.argv[3], sys.argv[3:])
"""


class Browser:
    def __init__(self, to: int, out: int) -> None:
        self._to, self._out = to, out
        self._buffer = b""
        self._number = 0
        self.events: list[dict[str, Any]] = []

    def ask(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        message = {
            "id": self._number,
            "method": method,
            "params": parameters,
            **({"sessionId": session} if session else {}),
        }
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer["error"]
                return dict(answer["result"])
            self.events.append(answer)

    def wait_for(self, method: str, session: str) -> None:
        while not any(event.get("method") == method and event.get("sessionId") == session for event in self.events):
            self.events.append(self._read())

    def _read(self) -> dict[str, Any]:
        end = time.monotonic() + _SECONDS
        while b"\0" not in self._buffer:
            assert time.monotonic() < end, "the browser does not answer"
            got = os.read(self._out, 1 << 20)
            assert got, "the browser has gone"
            self._buffer += got
        message, _, self._buffer = self._buffer.partition(b"\0")
        return dict(json.loads(message))

    @contextmanager
    def page(self, path: Path, width: int = 1200, dark: bool = False, script: bool = True) -> Iterator[Page]:
        """The page, loaded."""
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable", session)
        self.ask(
            "Emulation.setDeviceMetricsOverride", session, width=width, height=900, deviceScaleFactor=1, mobile=False
        )
        media = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.ask("Emulation.setEmulatedMedia", session, features=media)
        self.ask("Emulation.setScriptExecutionDisabled", session, value=not script)
        self.ask("Page.navigate", session, url=path.resolve().as_uri())
        self.wait_for("Page.loadEventFired", session)
        try:
            yield Page(self, session)
        finally:
            self.ask("Target.closeTarget", targetId=target)


class Page:
    def __init__(self, browser: Browser, session: str) -> None:
        self._browser, self._session = browser, session

    def value(self, expression: str) -> Any:
        """What the expression of JavaScript has for a value in the page."""
        answer = self._browser.ask("Runtime.evaluate", self._session, expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def _events(self, method: str) -> list[dict[str, Any]]:
        self.value("0")  # what came before has been read then
        return [
            event["params"]
            for event in self._browser.events
            if event.get("method") == method and event.get("sessionId") == self._session
        ]

    def complaints(self) -> list[Any]:
        """Everything in the console, what the page's own policy refused among it."""
        return [
            params
            for method in (
                "Runtime.consoleAPICalled",
                "Runtime.exceptionThrown",
                "Log.entryAdded",
                "Page.javascriptDialogOpening",
            )
            for params in self._events(method)
        ]

    def requests(self, blocked: bool = True) -> list[str]:
        """Addresses. blocked: those, too, that the page's own policy has kept the browser from asking."""
        failed = [] if blocked else self._events("Network.loadingFailed")
        kept = {params["requestId"] for params in failed if params.get("blockedReason") == "csp"}
        return [
            params["request"]["url"]
            for params in self._events("Network.requestWillBeSent")
            if params["requestId"] not in kept
        ]

    def picture(self, path: Path, top: int = 0, height: int | None = None) -> None:
        size = self._browser.ask("Page.getLayoutMetrics", self._session)["cssContentSize"]
        clip = {"x": 0, "y": top, "width": size["width"], "height": height or size["height"] - top, "scale": 1}
        answer = self._browser.ask("Page.captureScreenshot", self._session, clip=clip, captureBeyondViewport=True)
        path.write_bytes(b64decode(answer["data"]))


@contextmanager
def browser(folder: Path) -> Iterator[Browser]:
    """Raises debian.Missing where there is none and none can be installed. folder: empty, for what it keeps."""
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if not found:
        debian.install(["chromium"], ["chromium"])
        found = shutil.which("chromium")
    (their_in, to), (out, their_out) = os.pipe(), os.pipe()
    root = ["--no-sandbox"] if os.geteuid() == 0 else []
    command = [str(found), *OPTIONS, *root, f"--user-data-dir={folder}", "about:blank"]
    process = subprocess.Popen(
        [sys.executable, "-c", _PLUMBING, str(their_in), str(their_out), *command],
        pass_fds=(their_in, their_out),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    os.close(their_in)
    os.close(their_out)
    try:
        yield Browser(to, out)
    finally:
        os.close(to)  # it ends then
        os.close(out)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
