"""A headless Chromium, driven through chromedriver's plain HTTP interface (WebDriver); nothing to install from PyPI."""

import json
import os
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

CHROMIUM = next((p for p in map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome")) if p), None)
DRIVER = shutil.which("chromedriver")
FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-dev-shm-usage",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip
SHORT = (
    "const all = (s) => [...document.querySelectorAll(s)], one = (s) => document.querySelector(s);"
    "const [a, b, c] = arguments;"
)
POINTER = {"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}}


class Browser:
    """One window. `run` gives the value of a function body that knows `one`, `all` and its arguments a, b, c."""

    def __init__(self, folder: Path, width: int = 1400, height: int = 1000) -> None:
        environment = {**os.environ, "no_proxy": "127.0.0.1,localhost"}
        self.driver = subprocess.Popen([DRIVER, "--port=0"], stdout=subprocess.PIPE, text=True, env=environment)
        started = next(line for line in self.driver.stdout if "successfully on port" in line)
        self.root = f"http://127.0.0.1:{int(started.rstrip().rstrip('.').rsplit(' ', 1)[1])}"
        self.open_ = urllib.request.build_opener(urllib.request.ProxyHandler({})).open
        own = [f"--user-data-dir={folder / 'profile'}", f"--window-size={width},{height}"]
        options = {"binary": CHROMIUM, "args": [*FLAGS, *own]}
        wanted = {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
        self.session = "/session"
        self.session += "/" + self._post("", capabilities={"alwaysMatch": wanted})["sessionId"]

    def __enter__(self) -> "Browser":
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._send("DELETE", "")
        finally:
            self.driver.terminate()
            self.driver.wait()
            self.driver.stdout.close()

    def open(self, path: Path) -> None:
        self._post("/url", url=path.as_uri())

    def run(self, script: str, *arguments: object) -> object:
        return self._post("/execute/sync", script=SHORT + script, args=list(arguments))

    def wait(self, script: str, *arguments: object, seconds: float = 20.0) -> object:
        """The first value of `script` that is true."""
        end = time.monotonic() + seconds
        while not (value := self.run(script, *arguments)):
            if time.monotonic() > end:
                raise TimeoutError(script)
            time.sleep(0.05)
        return value

    def pointer(self, *steps: dict) -> None:
        """Moves and clicks of a real mouse: {"type": "pointerMove", "x": .., "y": ..}, pointerDown, pointerUp."""
        actions = [
            {"duration": 30, **step} if step["type"] == "pointerMove" else {"button": 0, **step} for step in steps
        ]
        self._post("/actions", actions=[{**POINTER, "actions": actions}])

    def wheel(self, x: int, y: int, delta: int) -> None:
        scroll = {"type": "scroll", "x": x, "y": y, "deltaX": 0, "deltaY": delta, "duration": 0, "origin": "viewport"}
        self._post("/actions", actions=[{"type": "wheel", "id": "wheel", "actions": [scroll]}])

    def keys(self, text: str) -> None:
        actions = [{"type": kind, "value": key} for key in text for kind in ("keyDown", "keyUp")]
        self._post("/actions", actions=[{"type": "key", "id": "keys", "actions": actions}])

    def cdp(self, command: str, **parameters: object) -> dict:
        return self._post("/goog/cdp/execute", cmd=command, params=parameters)

    def errors(self) -> list[str]:
        """Errors since the last call, refusals of the content policy among them."""
        return [entry["message"] for entry in self._post("/se/log", type="browser") if entry["level"] == "SEVERE"]

    def _post(self, path: str, **body: object) -> dict:
        return self._send("POST", path, body)

    def _send(self, method: str, path: str, body: object = None) -> dict:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            self.root + self.session + path, data, {"Content-Type": "application/json"}, method=method
        )
        try:
            with self.open_(request, timeout=60) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            with error:
                raise RuntimeError(json.load(error)["value"]["message"].splitlines()[0]) from None
