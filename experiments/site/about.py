# SPDX-License-Identifier: MIT
"""results/reading.md as a part of a page: how to read what stands above it."""

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup

DEEPER = {"h1": "h2", "h2": "h3", "h3": "h4"}


def part(text: str) -> Markup:
    """Headings one level deeper. Links lead into the sources, where the site does not reach, so
    their words stay and they go; so does any HTML, as text."""
    made = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = [kept for token in made.parse(text) for kept in _fitted(token)]
    return Markup(made.renderer.render(tokens, made.options, {}))


def _fitted(token: Token) -> list[Token]:
    token.tag = DEEPER.get(token.tag, token.tag)
    if token.children:
        token.children = [it for it in token.children if it.type not in NOT_HERE]
    if token.type == "table_open":
        return [_of_html('<div class="scroll">'), token]
    return [token, _of_html("</div>\n")] if token.type == "table_close" else [token]


NOT_HERE = ("link_open", "link_close", "image")


def _of_html(text: str) -> Token:
    return Token("html_block", "", 0, content=text)
