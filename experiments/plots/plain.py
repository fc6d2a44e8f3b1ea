# SPDX-License-Identifier: MIT
"""A plot's SVG made anew of what plots consist of, whoever wrote the file.

A report is one page with its plots inside, and a folder of results may come from anybody: what a
browser would run, fetch or lay over the page stays behind. So does whatever is not in these lists.
Text is written anew, too, so that no parser sees another structure in it than ours did.
"""

import re
from collections.abc import Iterator
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

NAMESPACE = "{http://www.w3.org/2000/svg}"
XLINK = "{http://www.w3.org/1999/xlink}"
SHAPES = {"path", "rect", "circle", "ellipse", "line", "polyline", "polygon", "use"}
WRITTEN = {"text", "tspan"}
ELEMENTS = {"svg", "g", "defs", "clipPath", "style"} | SHAPES | WRITTEN
LOOKS = {
    *("fill", "fill-opacity", "fill-rule", "opacity", "stroke", "stroke-dasharray"),
    *("stroke-dashoffset", "stroke-linecap", "stroke-linejoin", "stroke-miterlimit"),
    *("stroke-opacity", "stroke-width", "font-family", "font-size", "font-style", "font-weight"),
    "text-anchor",
}
PLACES = {
    *("d", "x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "r", "rx", "ry", "dx", "dy", "points"),
    *("width", "height", "viewBox", "transform", "id"),
}
# Matplotlib's; a rule of anybody's own would act on the whole page.
RULES = re.compile(r"\*\{stroke-linejoin: \w+; stroke-linecap: \w+\}")
HARMLESS = re.compile(r"[\w\s.,%#'+-]*(\((?!['\"])[\w\s.,%+-]*\)[\w\s.,%+-]*)*")
OF_OWN = re.compile(r"url\(#[\w-]+\)")  # another element of the same picture


class NoPlot(ValueError):
    """It cannot be read as SVG."""


def plain(text: str) -> str:
    """An <svg> element without a namespace, for inside a page. Raises NoPlot."""
    if re.search(r"<!(DOCTYPE|ENTITY)", text, re.IGNORECASE):
        raise NoPlot("it declares entities or a document type")
    try:
        root = ElementTree.fromstring(text)
    except (ElementTree.ParseError, ValueError) as why:
        raise NoPlot(str(why)) from None
    if root.tag != f"{NAMESPACE}svg":
        raise NoPlot(f"its root is {root.tag}")
    return ElementTree.tostring(_anew(root), encoding="unicode", short_empty_elements=True)


def _anew(old: Element) -> Element:
    name = old.tag.removeprefix(NAMESPACE)
    made = Element(name, dict(_attributes(old)))
    made.text = old.text if name in WRITTEN or _is_rule(old) else _space(old.text)
    for child in old:
        if _is_known(child):
            inner = _anew(child)
            inner.tail = child.tail if name in WRITTEN else _space(child.tail)
            made.append(inner)
    return made


def _is_known(it: Element) -> bool:
    if not isinstance(it.tag, str) or not it.tag.startswith(NAMESPACE):
        return False
    name = it.tag.removeprefix(NAMESPACE)
    return name in ELEMENTS and (name != "style" or _is_rule(it))


def _is_rule(it: Element) -> bool:
    return it.tag == f"{NAMESPACE}style" and RULES.fullmatch((it.text or "").strip()) is not None


def _space(text: str | None) -> str | None:
    return "\n" if text and "\n" in text else None


def _attributes(it: Element) -> Iterator[tuple[str, str]]:
    for name, value in it.attrib.items():
        if name in ("href", f"{XLINK}href"):
            if re.fullmatch(r"#[\w-]+", value):
                yield "href", value
        elif name == "clip-path":
            if OF_OWN.fullmatch(value):
                yield name, value
        elif name == "style":
            yield name, "; ".join(_declarations(value))
        elif name in PLACES | LOOKS and _is_harmless(value):
            yield name, value


def _declarations(style: str) -> Iterator[str]:
    for part in style.split(";"):
        name, _, value = (word.strip() for word in part.partition(":"))
        own = name == "clip-path" and OF_OWN.fullmatch(value)
        if own or (name in LOOKS and _is_harmless(value)):
            yield f"{name}: {value}"


def _is_harmless(value: str) -> bool:
    """No address and no escape, which is all that could lead out of the picture."""
    return HARMLESS.fullmatch(value) is not None and "url" not in value.lower()
