# SPDX-License-Identifier: MIT
"""A page in a browser without a screen: what it shows, what keys do, what it complains of."""

import asyncio
import base64
import json
import os
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from experiments.workloads.web.chromium import OPTIONS
from experiments.workloads.web.devtools import DevTools, browser

END_S = 10.0
PATIENCE_S = 20.0
KEYS = {"ArrowRight": 39, "ArrowLeft": 37, "Home": 36, "End": 35, " ": 32, "Tab": 9}


class Page:
    def __init__(self, tools: DevTools, session: str) -> None:
        self._tools, self._session = tools, session
        self.complaints: list[str] = []  # of the console, and exceptions
        self._loaded: set[str] = set()  # documents, by the browser's name of their loading
        tools.on("Page.lifecycleEvent", self._lifecycle)
        tools.on("Runtime.exceptionThrown", lambda it: self.complaints.append(json.dumps(it)))
        tools.on("Log.entryAdded", lambda it: self.complaints.append(it["entry"]["text"]))

    def heard(self, event: str, handler: Callable[[dict[str, Any]], None]) -> None:
        self._tools.on(event, handler)

    async def ask(self, method: str, **params: Any) -> dict[str, Any]:
        return await self._tools.ask(method, self._session, **params)

    def _lifecycle(self, told: dict[str, Any]) -> None:
        if told["name"] == "load":
            self._loaded.add(told["loaderId"])

    async def go(self, url: str) -> None:
        """To a page, until it is there with its scripts: what came before it is not asked."""
        loading = (await self.ask("Page.navigate", url=url))["loaderId"]
        async with asyncio.timeout(PATIENCE_S):
            while loading not in self._loaded:
                await asyncio.sleep(0.02)

    async def value(self, expression: str) -> Any:
        """Of an expression, which may be a promise."""
        told = await self.ask(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in told, told["exceptionDetails"]
        return told["result"].get("value")

    async def text(self, selector: str) -> str:
        return await self.value(f"document.querySelector({json.dumps(selector)})?.textContent")

    async def until(self, what: str, expression: str, seconds: float = PATIENCE_S) -> Any:
        end = time.monotonic() + seconds
        while not (found := await self.value(expression)):
            if time.monotonic() > end:
                seen = await self.value("document.body.innerText")
                raise AssertionError(f"waited for {what}: {self.complaints}\n{seen}")
            await asyncio.sleep(0.05)
        return found

    async def press(self, key: str) -> None:
        words = {"key": key, "windowsVirtualKeyCode": KEYS[key]}
        await self.ask("Input.dispatchKeyEvent", type="rawKeyDown", **words)
        await self.ask("Input.dispatchKeyEvent", type="keyUp", **words)

    async def size(self, width: int, height: int) -> None:
        await self.ask(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    async def prefers(self, **features: str) -> None:
        told = [{"name": f"prefers-{n.replace('_', '-')}", "value": v} for n, v in features.items()]
        await self.ask("Emulation.setEmulatedMedia", features=told)

    async def picture(self, path: Path, *, whole: bool = True) -> None:
        told = await self.ask("Page.captureScreenshot", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(told["data"]))


@asynccontextmanager
async def opened(
    url: str, *, width: int = 1280, height: int = 900, proxy: str | None = None
) -> AsyncIterator[Page]:
    """A page at `url`, in a browser of its own. `proxy`: the URL of one, for loopback as well."""
    options = OPTIONS
    if proxy:
        options = tuple(it for it in OPTIONS if it != "--no-proxy-server")
        options += (f"--proxy-server={proxy}", "--proxy-bypass-list=<-loopback>")
    with tempfile.TemporaryDirectory(prefix="tm3-watch-", ignore_cleanup_errors=True) as home:
        places = dict.fromkeys(("HOME", "TMPDIR", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"), home)
        words = ["chromium", *options, f"--user-data-dir={home}/profile"]
        async with browser(words, {**os.environ, **places}, END_S) as tools:
            target = await tools.ask("Target.createTarget", url="about:blank")
            ident = target["targetId"]
            told = await tools.ask("Target.attachToTarget", targetId=ident, flatten=True)
            page = Page(tools, told["sessionId"])
            for domain in ("Page", "Runtime", "Log"):
                await page.ask(f"{domain}.enable")
            await page.ask("Page.setLifecycleEventsEnabled", enabled=True)
            await page.size(width, height)
            await page.go(url)
            yield page
