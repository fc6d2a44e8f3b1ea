# SPDX-License-Identifier: MIT
"""The pages there are. All are synthetic; none is a recording.

`medium` and `large` are those of an earlier study of HTTP over UDP, which the paper's Table 5
uses: images of two sizes on one host, named by one HTML file. `site-01` ... `site-30` are drawn,
always the same, after what the HTTP Archive published of 2024's desktop pages: requests per page
(24, 42, 71, 115, 176 at the 10th, 25th, 50th, 75th, 90th percentile) and median kilobytes by kind.
Their order is that of their requests: site-01 is the smallest, and any even choice of numbers is
an even choice of sizes. Shares of requests by kind, hosts, depth and think times are not in those
figures; they are ours, chosen to be ordinary: about 0.6 powers of the requests in hosts, objects up
to five deep, 0.2 ms of the main thread a kilobyte of script.
"""

import itertools
import math
import random
from dataclasses import replace
from functools import cache

from experiments.workloads.web.page import Item, Kind, Page

SITES = 30
NAMES = ("medium", "large", *(f"site-{number:02d}" for number in range(1, SITES + 1)))
SITE_NAMES = NAMES[2:]
TEN_SITES = SITE_NAMES[1::3]  # every third

SMALL, BIG = 2_600, 86_500
REQUESTS_AT = ((0.10, 24), (0.25, 42), (0.50, 71), (0.75, 115), (0.90, 176))
MEDIAN_REQUESTS = 71
# Bytes of the median page and (ours) shares of its requests.
MEDIAN_BYTES: dict[Kind, int] = {
    "html": 18_000,
    "style": 78_000,
    "script": 613_000,
    "font": 131_000,
    "image": 1_054_000,
}
SHARE: dict[Kind, float] = {"style": 0.10, "script": 0.33, "font": 0.05, "image": 0.52}
SPREAD = {"page": 0.3, "style": 0.9, "script": 1.0, "font": 0.4, "image": 1.2}
LEAST: dict[Kind, int] = {"html": 4_000, "style": 1_200, "script": 1_500, "font": 400, "image": 200}
HOST_POWER = 0.6
NAMING_BYTES = 110  # to name one object, at most
MAX_HOSTS = 24
OWN_SHARE = 0.4  # of the objects, on the page's own host
NAMED_LATER: dict[Kind, float] = {"script": 0.35, "image": 0.25}  # not by the HTML
IMAGES_BY_STYLE = 0.3  # of those
MAX_DEPTH = 5
THINK_MS_PER_KB = 0.2
HTML_THINK_MS = 5.0


@cache
def page(name: str) -> Page:
    """A page by its name."""
    if name == "medium":
        return _of_images("medium", 40, 7, html=2_500)
    if name == "large":
        return _of_images("large", 200, 17, html=8_000)
    if name not in SITE_NAMES:
        raise ValueError(f"page: {name!r} is none of {', '.join(NAMES)}")
    return _site(SITE_NAMES.index(name) + 1)


def _of_images(name: str, small: int, big: int, html: int) -> Page:
    """The large ones lie evenly among the small ones."""
    total = small + big
    places = {round((number + 0.5) * total / big) for number in range(big)}
    items = [Item(0, 0, "html", html, None)]
    for place in range(total):
        size = BIG if place in places else SMALL
        items.append(Item(place + 1, 0, "image", size, 0))
    title = f"{small} images of {SMALL} bytes and {big} of {BIG}"
    return Page(name, title, (f"www.{name}.test",), tuple(items))


def requests_at(share: float) -> int:
    """Requests of the page below which `share` of all pages lie; its logarithm runs straight."""
    points = [(q, math.log(n)) for q, n in REQUESTS_AT]
    pairs = list(itertools.pairwise(points))
    (q0, n0), (q1, n1) = next((pair for pair in pairs if share <= pair[1][0]), pairs[-1])
    return round(math.exp(n0 + (n1 - n0) * (share - q0) / (q1 - q0)))


def _site(number: int) -> Page:
    name = SITE_NAMES[number - 1]
    draw = random.Random(f"tm3 {name}")
    requests = requests_at((number - 0.5) / SITES)
    kinds = _kinds(draw, requests)
    sizes = _sizes(draw, kinds, requests)
    hosts = min(MAX_HOSTS, max(2, round(requests**HOST_POWER * draw.uniform(0.7, 1.3))))
    items: list[Item] = []
    depths: list[int] = []
    for index, (kind, size) in enumerate(zip(kinds, sizes, strict=True)):
        after = _after(draw, kind, items, depths) if index else None
        depths.append(0 if after is None else depths[after] + 1)
        think = HTML_THINK_MS if kind == "html" else 0.0
        if kind == "script":
            think = round(size / 1000 * THINK_MS_PER_KB, 1)
        items.append(Item(index, _host(draw, hosts, index), kind, size, after, think))
    items = [_with_room(item, items) for item in items]
    names = ("www", *(f"h{host:02d}" for host in range(1, hosts)))
    total = sum(item.size for item in items)
    title = f"synthetic, {requests} requests, {total / 1e6:.2f} MB, {hosts} hosts"
    return Page(name, title, tuple(f"{host}.{name}.test" for host in names), tuple(items))


def _kinds(draw: random.Random, requests: int) -> list[Kind]:
    """The HTML, then styles, scripts, fonts; images lie among the scripts."""
    counts: dict[Kind, int] = {
        kind: max(1, round(requests * share)) for kind, share in SHARE.items() if kind != "image"
    }
    images = requests - 1 - sum(counts.values())
    mixed: list[Kind] = ["script"] * (counts["script"] - 1) + ["image"] * images
    draw.shuffle(mixed)
    styles: list[Kind] = ["style"] * counts["style"]
    fonts: list[Kind] = ["font"] * counts["font"]
    return ["html", *styles, "script", *fonts, *mixed]


def _sizes(draw: random.Random, kinds: list[Kind], requests: int) -> list[int]:
    """Log-normal within each kind; each kind's sum grows with the requests."""
    heavy = requests / MEDIAN_REQUESTS * math.exp(draw.gauss(0, SPREAD["page"]))
    drawn = [math.exp(draw.gauss(0, SPREAD.get(kind, 0))) for kind in kinds]
    sizes = []
    for kind, weight in zip(kinds, drawn, strict=True):
        same = sum(w for k, w in zip(kinds, drawn, strict=True) if k == kind)
        grown = math.sqrt(heavy) if kind == "html" else heavy
        sizes.append(max(LEAST[kind], round(MEDIAN_BYTES[kind] * grown * weight / same)))
    return sizes


def _with_room(item: Item, items: list[Item]) -> Item:
    """At least as large as what it must say."""
    named = sum(other.after == item.index for other in items)
    if item.kind == "html":
        named = len(items)
    least = NAMING_BYTES * named + 500 if item.kind in ("html", "style", "script") else 0
    return replace(item, size=max(item.size, least))


def _after(draw: random.Random, kind: Kind, items: list[Item], depths: list[int]) -> int:
    """Which object names the next one."""
    styles = [item.index for item in items if item.kind == "style"]
    if kind == "font":
        return draw.choice(styles)
    if draw.random() >= NAMED_LATER.get(kind, 0):
        return 0
    if kind == "image" and draw.random() < IMAGES_BY_STYLE:
        return draw.choice(styles)
    scripts = [i.index for i in items if i.kind == "script" and depths[i.index] < MAX_DEPTH]
    return draw.choice(scripts) if scripts else 0


def _host(draw: random.Random, hosts: int, index: int) -> int:
    """The page's own host has the most; of the others, the earlier the more."""
    if index == 0 or draw.random() < OWN_SHARE:
        return 0
    if index < hosts:
        return index  # each has at least one
    return draw.choices(range(1, hosts), [1 / rank for rank in range(1, hosts)])[0]
