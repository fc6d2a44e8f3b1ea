# SPDX-License-Identifier: MIT
"""A page as files: what a browser finds in them makes it load the same tree.

Every body has exactly its declared size, is the same each time, and does not compress. Images
are valid (a browser breaks off one that is not), padded in a private chunk. Fonts are noise: a
browser loads them whole before it finds out. Scripts keep the main thread busy for their think
time, then add what they name; they are async, so that none waits for another.
"""

import base64
import hashlib
import random
import struct
import zlib
from pathlib import Path

from experiments.workloads.web.page import Item, Manifest, Page

SIGNATURE = b"\x89PNG\r\n\x1a\n"


def body(page: Page, item: Item) -> bytes:
    """An object's bytes."""
    if item.kind == "image":
        return _png(item.size, _noise(page, item, item.size))
    if item.kind == "font":
        return _noise(page, item, item.size)
    text = {"html": _html, "style": _style, "script": _script}[item.kind](page, item)
    before, after = ("<!--", "-->") if item.kind == "html" else ("/*", "*/")
    rest = item.size - len(text) - len(before) - len(after)
    if rest < 0:
        raise ValueError(f"{page.name}{item.path}: {len(text)} bytes do not fit {item.size}")
    # base64 has neither "-->" nor "*/": its "/" follows no "*".
    padding = base64.b64encode(_noise(page, item, rest * 3 // 4 + 3))[:rest].decode()
    return (text + before + padding + after).encode()


def write(page: Page, root: Path) -> Manifest:
    """Writes a page below `root`, a folder for each host."""
    digests = []
    for host in page.hosts:
        (root / host).mkdir(parents=True, exist_ok=True)
    for item in page.items:
        content = body(page, item)
        (root / page.hosts[item.host] / item.path.lstrip("/")).write_bytes(content)
        digests.append(hashlib.sha256(content).hexdigest())
    return Manifest(page, tuple(digests))


def _noise(page: Page, item: Item, size: int) -> bytes:
    return random.Random(f"tm3 {page.name} {item.index}").randbytes(size)


def _url(page: Page, by: Item, item: Item) -> str:
    """Short where it can be; a script's are relative to the page, a style's to the style."""
    if by.host == item.host == 0:
        return item.path
    return f"//{page.hosts[item.host]}{item.path}"


def _html(page: Page, item: Item) -> str:
    """What styles name is loaded only where it is used: so it is used here."""
    head, tail = [], []
    for named in page.named[item.index]:
        url = _url(page, item, named)
        if named.kind == "style":
            head.append(f'<link rel="stylesheet" href="{url}">')
        elif named.kind == "script":
            head.append(f'<script async src="{url}"></script>')
        else:
            tail.append(f'<img src="{url}">')
    for other in page.items:
        if other.after is not None and page.items[other.after].kind == "style":
            tail.append(f'<p class="u{other.index}">{page.name}</p>')
    lines = ["<!doctype html>", '<html><head><meta charset="utf-8">', f"<title>{page.name}</title>"]
    lines.append('<link rel="icon" href="data:,">')  # or a browser asks for one
    return "\n".join([*lines, *head, "</head><body>", *tail, "</body></html>\n"])


def _style(page: Page, item: Item) -> str:
    rules = []
    for named in page.named[item.index]:
        url, use = _url(page, item, named), f"u{named.index}"
        if named.kind == "font":
            rules.append(f"@font-face{{font-family:{use};src:url({url})}}")
            rules.append(f".{use}{{font-family:{use}}}")
        else:
            rules.append(f".{use}{{background-image:url({url})}}")
    return "\n".join([*rules, ""])


def _script(page: Page, item: Item) -> str:
    lines = [f"var end=performance.now()+{item.think_ms};while(performance.now()<end);"]
    for named in page.named[item.index]:
        kind = "script" if named.kind == "script" else "img"
        lines.append(f'add("{kind}","{_url(page, item, named)}");')
    add = (
        "function add(kind,url){var e=document.createElement(kind);e.src=url;"
        "(kind=='img'?document.body||document.head:document.head).appendChild(e)}"
    )
    return "(function(){" + "\n".join([add, *lines]) + "})();\n"


def _png(size: int, noise: bytes) -> bytes:
    """One grey pixel, and a chunk that nobody shows."""
    header = _chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0))
    pixel = _chunk(b"IDAT", zlib.compress(b"\0\x80"))
    rest = size - len(SIGNATURE + header + pixel + _chunk(b"IEND", b"")) - 12
    if rest < 0:
        raise ValueError(f"no image has {size} bytes")
    return SIGNATURE + header + _chunk(b"tmTm", noise[:rest]) + pixel + _chunk(b"IEND", b"")


def _chunk(name: bytes, content: bytes) -> bytes:
    check = zlib.crc32(name + content)
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", check)
