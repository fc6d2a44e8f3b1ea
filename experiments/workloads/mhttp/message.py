# SPDX-License-Identifier: MIT
"""HTTP/1.1's messages: heads, which bytes they are about, and how their bodies end."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from experiments.workloads.mhttp.failure import WrongAnswer
from experiments.workloads.mhttp.plan import Range

Fields = tuple[tuple[str, str], ...]
Ending = int | Literal["chunked", "close"]  # of a body: its length, or what tells its end

# Of one connection only, and so never handed on; and what the fields of a Connection field are.
HOP_BY_HOP = {
    *("connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection"),
    *("te", "trailer", "transfer-encoding", "upgrade"),
}
_STATUS = re.compile(r"HTTP/1\.([01]) (\d{3})(?: (.*))?")
_CONTENT_RANGE = re.compile(r"bytes (\d+)-(\d+)/(\d+|\*)")


@dataclass(frozen=True)
class Head:
    """Of a request or a response: its first line, and its fields in their order."""

    start: str
    fields: Fields

    def get(self, name: str) -> str | None:
        """A field's value; of one that came more than once, all values."""
        told = [value for key, value in self.fields if key.lower() == name]
        return ", ".join(told) if told else None

    def tokens(self, name: str) -> set[str]:
        return {it.strip().lower() for it in (self.get(name) or "").split(",") if it.strip()}

    def without(self, names: Iterable[str]) -> Fields:
        gone = set(names)
        return tuple(it for it in self.fields if it[0].lower() not in gone)

    def ending(self) -> Ending | None:
        """What the fields tell of a body's end; None: nothing. Raises WrongAnswer."""
        codings = self.tokens("transfer-encoding")
        if codings == {"chunked"}:
            return "chunked"
        if codings:
            raise WrongAnswer(f"a body in the transfer coding {', '.join(sorted(codings))}")
        lengths = self.tokens("content-length")
        if not lengths:
            return None
        text = lengths.pop()
        if lengths or not re.fullmatch(r"\d{1,18}", text):
            raise WrongAnswer(f"Content-Length: {self.get('content-length')}")
        return int(text)

    def end_to_end(self) -> Fields:
        """What may be handed on."""
        return self.without(HOP_BY_HOP | self.tokens("connection"))


@dataclass(frozen=True)
class Answer(Head):
    """A response's head."""

    status: int
    reason: str
    minor: int

    @property
    def said(self) -> str:
        return f"{self.status} {self.reason}".strip()

    @property
    def kept_alive(self) -> bool:
        return self.minor == 1 and "close" not in self.tokens("connection")

    def body(self, method: str = "GET") -> Ending:
        """Of the body behind it. Raises WrongAnswer."""
        if method == "HEAD" or self.status in (204, 304):
            return 0
        told = self.ending()
        return "close" if told is None else told

    def content_range(self) -> tuple[Range, int | None] | None:
        """The bytes that it has, and of how many, if that is told; None: not told, or nonsense."""
        match = _CONTENT_RANGE.fullmatch((self.get("content-range") or "").strip())
        if not match:
            return None
        part = Range(int(match[1]), int(match[2]) + 1)
        total = None if match[3] == "*" else int(match[3])
        if part.size < 1 or (total is not None and part.end > total):
            return None
        return part, total


@dataclass(frozen=True)
class Identity:
    """What tells one state of an object from another."""

    length: int
    etag: str | None
    modified: str | None
    coding: str | None

    @classmethod
    def of(cls, answer: Answer, length: int) -> "Identity":
        names = ("etag", "last-modified", "content-encoding")
        return cls(length, *(answer.get(name) for name in names))

    def difference(self, other: "Identity") -> str | None:
        """What the two do not agree on, in words."""
        pairs = (
            ("length", self.length, other.length),
            ("ETag", self.etag, other.etag),
            ("Last-Modified", self.modified, other.modified),
            ("Content-Encoding", self.coding, other.coding),
        )
        for name, mine, its in pairs:
            if mine != its:
                return f"{name} {its or 'missing'}, not {mine or 'missing'}"
        return None


def told_length(answer: Answer, first: Range) -> int | str:
    """What the answer to the first range says of the object's length, or why it says nothing."""
    if answer.status != 206:
        return f"{answer.said} for a range"
    told = answer.content_range()
    if told is None:
        return f"Content-Range {answer.get('content-range')}"
    part, length = told
    if length is None:
        return "a range without the whole length"
    if part != Range(0, min(first.end, length)):
        return f"Content-Range {answer.get('content-range')} for {first.field()}"
    if answer.body() not in (part.size, "chunked", "close"):
        return f"Content-Length {answer.get('content-length')} for {part.size} bytes"
    return length


def check(answer: Answer, part: Range, wanted: Identity) -> None:
    """Whether this begins the range that was asked for, of the same object. Raises WrongAnswer."""
    if answer.status != 206:
        raise WrongAnswer(f"{answer.said} for a range")
    told = answer.content_range()
    if told is None or told[1] is None or told[0] != part:
        raise WrongAnswer(f"Content-Range {answer.get('content-range')} for {part.field()}")
    if differs := wanted.difference(Identity.of(answer, told[1])):
        raise WrongAnswer(f"another object: {differs}")
    if answer.body() not in (part.size, "chunked", "close"):
        raise WrongAnswer(f"Content-Length {answer.get('content-length')} for {part.size} bytes")


def fields_of(lines: Sequence[str]) -> Fields:
    found = []
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or not name or name != name.strip():
            raise WrongAnswer(f"a field {line[:60]!r}")
        found.append((name, value.strip()))
    return tuple(found)


def lines_of(data: bytes) -> list[str]:
    return data.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")


def answer(data: bytes) -> Answer:
    """Of a whole head, its empty line included. Raises WrongAnswer."""
    start, *lines = lines_of(data)
    match = _STATUS.fullmatch(start)
    if not match:
        raise WrongAnswer(f"answered {start[:60]!r}, which is no HTTP/1.1")
    return Answer(start, fields_of(lines), int(match[2]), match[3] or "", int(match[1]))


def head(data: bytes) -> Head:
    """Of a request. Raises WrongAnswer."""
    start, *lines = lines_of(data)
    return Head(start, fields_of(lines))


def written(start: str, fields: Iterable[tuple[str, str]]) -> bytes:
    lines = [start, *(f"{name}: {value}" for name, value in fields)]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def whole(first: Answer, length: int) -> Answer:
    """The first chunk's 206 as the 200 of the whole object."""
    fields = Head("", first.end_to_end()).without({"content-range", "content-length"})
    return Answer(
        "HTTP/1.1 200 OK", (*fields, ("Content-Length", str(length))), 200, "OK", first.minor
    )
