# SPDX-License-Identifier: MIT
"""A page load by Debian's Chromium, headless, with a fresh profile; every body compared.

    python -m experiments.workloads.web.chromium --manifest FILE --hosts FILE --scheme http ...

The time is Navigation Timing's, from fetchStart to loadEventStart: what a page's own scripts would
measure. Names are resolved by a table, everything else is told not to exist, and the browser's own
traffic is switched off; in a lab's namespace it would lead nowhere anyway. On standard output
comes one line of JSON; the browser stays until standard input ends, so that its connections can
be looked at.
"""

import argparse
import asyncio
import base64
import hashlib
import json
import os
import signal
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from experiments.workloads import line
from experiments.workloads.web.devtools import BrowserError, DevTools, Event, browser
from experiments.workloads.web.page import Manifest

END_S = 10.0
OPTIONS = (
    "--headless=new",
    "--no-sandbox",  # root has none; the pages are ours
    "--remote-debugging-pipe",
    "--no-first-run",
    "--no-default-browser-check",
    "--no-pings",
    "--no-proxy-server",
    "--mute-audio",
    "--hide-scrollbars",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-breakpad",
    "--disable-client-side-phishing-detection",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-domain-reliability",
    "--disable-extensions",
    "--disable-sync",
    "--disable-quic",
    "--disable-logging",
    "--log-level=3",
    "--metrics-recording-only",
    "--password-store=basic",
    "--disable-features=HttpsUpgrades,HttpsFirstBalancedModeAutoEnable,OptimizationHints,"
    "MediaRouter,DialMediaRouteProvider,Translate,InterestFeedContentSuggestions,"
    "AutofillServerCommunication,CertificateTransparencyComponentUpdater,NetworkPrediction",
)
TIMING = 'JSON.stringify(performance.getEntriesByType("navigation")[0])'


class LoadError(RuntimeError):
    """The page did not come as it is."""


@dataclass
class Seen:
    """What the browser told of the network, by its number of the request."""

    urls: dict[str, str] = field(default_factory=dict)
    responses: dict[str, Event] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    finished: dict[str, float] = field(default_factory=dict)  # when
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def listen(self, tools: DevTools) -> None:
        tools.on("Network.requestWillBeSent", self._sent)
        tools.on("Network.responseReceived", self._received)
        tools.on("Network.loadingFinished", self._finished)
        tools.on("Network.loadingFailed", self._failed)

    def _sent(self, event: Event) -> None:
        self.urls[event["requestId"]] = event["request"]["url"]

    def _received(self, event: Event) -> None:
        self.responses[event["requestId"]] = event["response"]

    def _finished(self, event: Event) -> None:
        self.finished[event["requestId"]] = event["timestamp"]
        self.changed.set()

    def _failed(self, event: Event) -> None:
        self.failed[event["requestId"]] = event["errorText"]
        self.changed.set()

    def check(self) -> None:
        for number, why in self.failed.items():
            raise LoadError(f"{self.urls.get(number)}: {why}")
        for number, response in self.responses.items():
            if response["status"] != 200:
                raise LoadError(f"{self.urls[number]}: answered {response['status']}")


def expected(manifest: Manifest, scheme: str) -> dict[str, int]:
    """Which object is at which address."""
    page = manifest.page
    return {f"{scheme}://{page.hosts[it.host]}{it.path}": it.index for it in page.items}


async def load(
    tools: DevTools, manifest: Manifest, scheme: str, line_at: Path | None = None
) -> dict[str, Any]:
    """Navigates, waits for everything, compares everything."""
    wanted = expected(manifest, scheme)
    target = await tools.ask("Target.createTarget", url="about:blank")
    attached = await tools.ask("Target.attachToTarget", targetId=target["targetId"], flatten=True)
    session = attached["sessionId"]
    seen, loaded = Seen(), asyncio.Event()
    seen.listen(tools)
    tools.on("Page.loadEventFired", lambda _: loaded.set())
    await tools.ask("Page.enable", session)
    room = 4 * manifest.page.bytes + (1 << 20)
    await tools.ask("Network.enable", session, maxTotalBufferSize=room, maxResourceBufferSize=room)
    address = next(iter(wanted))
    if line_at:
        await asyncio.to_thread(line.wait, line_at)
    answer = await tools.ask("Page.navigate", session, url=address)
    if "errorText" in answer:
        raise LoadError(f"{address}: {answer['errorText']}")
    await loaded.wait()
    while len(seen.finished) < len(wanted):
        seen.check()
        seen.changed.clear()
        await seen.changed.wait()
    seen.check()
    told = await tools.ask("Runtime.evaluate", session, expression=TIMING, returnByValue=True)
    await _compare(tools, session, manifest, wanted, seen)
    return account(json.loads(told["result"]["value"]), manifest, wanted, seen)


async def _compare(
    tools: DevTools, session: str, manifest: Manifest, wanted: Mapping[str, int], seen: Seen
) -> None:
    """Every body once, none besides."""
    urls = sorted(seen.urls[number] for number in seen.finished)
    if urls != sorted(wanted):
        odd = set(urls) ^ set(wanted) or "some twice"
        raise LoadError(f"loaded {len(urls)} objects, not {len(wanted)}: {odd}")
    for number in sorted(seen.finished):
        got = await tools.ask("Network.getResponseBody", session, requestId=number)
        text: str = got["body"]
        body = base64.b64decode(text) if got["base64Encoded"] else text.encode()
        url = seen.urls[number]
        if hashlib.sha256(body).hexdigest() != manifest.sha256[wanted[url]]:
            raise LoadError(f"{url}: the bytes are not those of the page")


def account(
    navigation: dict[str, Any], manifest: Manifest, wanted: Mapping[str, int], seen: Seen
) -> dict[str, Any]:
    """Of the page by its own clock; of the objects by the browser's, which begins with the page."""
    fetch = navigation["fetchStart"]
    numbers = {wanted[seen.urls[number]]: number for number in seen.finished}
    began = seen.responses[numbers[0]]["timing"]["requestTime"]
    objects = []
    for index, number in sorted(numbers.items()):
        timing = seen.responses[number]["timing"]
        sent = timing["requestTime"] - began
        objects.append(
            {
                "index": index,
                "asked_s": round(sent + timing["sendStart"] / 1000, 6),
                "first_byte_s": round(sent + timing["receiveHeadersEnd"] / 1000, 6),
                "last_byte_s": round(seen.finished[number] - began, 6),
                "connection": seen.responses[number]["connectionId"],
            }
        )
    return {
        "load_s": round((navigation["loadEventStart"] - fetch) / 1000, 6),
        "first_byte_s": round((navigation["responseStart"] - fetch) / 1000, 6),
        "html_s": round((navigation["responseEnd"] - fetch) / 1000, 6),
        "last_byte_s": max(it["last_byte_s"] for it in objects),
        "bytes": manifest.page.bytes,
        "objects": objects,
        "connections": sorted({it["connection"] for it in objects}),
        "protocols": sorted({it.get("protocol", "?") for it in seen.responses.values()}),
    }


def command(
    program: str, profile: Path, addresses: Mapping[str, str], keys: str | None, http2: bool
) -> list[str]:
    rules = [f"MAP {host} {address}" for host, address in addresses.items()]
    words = [program, *OPTIONS, f"--user-data-dir={profile}"]
    words.append(f"--host-resolver-rules={','.join([*rules, 'MAP * ~NOTFOUND'])}")
    if keys is not None:
        words.append(f"--ignore-certificate-errors-spki-list={keys}")
    if not http2:
        words.append("--disable-http2")
    return words


async def run(args: argparse.Namespace) -> None:
    manifest = Manifest.read(args.manifest)
    addresses = json.loads(args.hosts.read_text())
    scheme = "https" if args.keys else "http"
    with tempfile.TemporaryDirectory(prefix="tm3-chromium-", ignore_cleanup_errors=True) as name:
        home = Path(name)
        places = dict.fromkeys(("HOME", "TMPDIR", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"), name)
        words = command(
            args.program, home / "profile", addresses, args.keys, args.protocol == "http2"
        )
        async with browser(words, {**os.environ, **places}, END_S) as tools:
            async with asyncio.timeout(args.seconds):
                found = await load(tools, manifest, scheme, args.line)
            print(json.dumps(found), flush=True)
            await asyncio.to_thread(sys.stdin.read)


def arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="chromium", description="Loads a page with Chromium.")
    parser.add_argument("--manifest", type=Path, required=True)
    parser.add_argument("--hosts", type=Path, required=True, help="json: address of each host")
    parser.add_argument("--protocol", choices=("http1", "http2"), required=True)
    parser.add_argument("--keys", help="digest of the servers' key, to be believed: TLS")
    parser.add_argument("--program", default="chromium")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--line", type=Path, help="wait at the start line of this folder")
    return parser.parse_args(argv)


def main() -> int:
    args = arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # the browser ends before us
    try:
        asyncio.run(run(args))
    except (LoadError, BrowserError) as error:
        print(f"chromium: {error}", file=sys.stderr)
        return 1
    except TimeoutError:
        print(f"chromium: not loaded after {args.seconds:g} s", file=sys.stderr)
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
