"""A headless Chromium, driven through chromedriver's plain HTTP interface (WebDriver); nothing to install from PyPI."""

import base64
import json
import os
import shutil
import subprocess
import time
import urllib.request
from pathlib import Path

CHROMIUM = next((p for p in map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome")) if p), None)
DRIVER = shutil.which("chromedriver")
FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-dev-shm-usage",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--allow-file-access-from-files",
)  # fmt: skip
POINTER = {"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}}


class Browser:
    """One window. `run` evaluates a function body and returns its value."""

    def __init__(self, folder: Path, width: int = 1400, height: int = 1000, flags: tuple[str, ...] = ()) -> None:
        self.folder = folder
        environment = {**os.environ, "no_proxy": "127.0.0.1,localhost"}
        self.driver = subprocess.Popen([DRIVER, "--port=0"], stdout=subprocess.PIPE, text=True, env=environment)
        started = next(line for line in self.driver.stdout if "successfully on port" in line)
        self.root = f"http://127.0.0.1:{int(started.rstrip().rstrip('.').rsplit(' ', 1)[1])}"
        self.open_ = urllib.request.build_opener(urllib.request.ProxyHandler({})).open
        own = [f"--user-data-dir={folder / 'profile'}", f"--window-size={width},{height}"]
        options = {
            "binary": CHROMIUM,
            "args": [*FLAGS, *own, *flags],
            "prefs": {"download.default_directory": str(folder)},
        }
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
        return self._post("/execute/sync", script=script, args=list(arguments))

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

    def log(self) -> list[dict]:
        """What the console said since the last call: errors and refusals of the content policy among it."""
        return self._post("/se/log", type="browser")

    def screenshot(self, path: Path, width: int, height: int, scale: float = 1.0, whole: bool = False) -> None:
        metrics = {"width": width, "height": height, "deviceScaleFactor": scale, "mobile": width < 600}
        self.cdp("Emulation.setDeviceMetricsOverride", **metrics)
        time.sleep(0.4)
        path.write_bytes(base64.b64decode(self.cdp("Page.captureScreenshot", captureBeyondViewport=whole)["data"]))

    def _post(self, path: str, **body: object) -> dict:
        return self._send("POST", path, body)

    def _send(self, method: str, path: str, body: object = None) -> dict:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            self.root + self.session + path, data, {"Content-Type": "application/json"}, method=method
        )
        with self.open_(request, timeout=60) as answer:
            return json.load(answer)["value"]
