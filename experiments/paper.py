# SPDX-License-Identifier: MIT
"""The rows of published figures that the laboratory measures again, whether run or not."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Published:
    row: str  # as Claim.row names it
    where: str
    what: str


ROWS = (
    Published("download", "Fig. 9", "one file over one connection, by number of pipes"),
    Published("page-load", "Fig. 11", "thirty pages, HTTP/1.1 and a multiplexing HTTP"),
    Published("loss", "Fig. 12", "pages at 0.5, 1 and 1.5 % loss"),
    Published("loss-http", "Table 5", "two pages by HTTP/1.1 at 1 and 2 % loss"),
    Published("object-spdy", "Table 1", "a 4 KB object alone and beside a bulk download"),
    Published("object-size", "Table 2", "the same beside downloads of 0.5 to 8 MB"),
    Published("sender-blocking", "Table 6", "a 4 KB object beside bulk, by buffers"),
    Published("sender-blocking-lte", "Table 7", "the same on LTE"),
    Published("reordering", "Table 8, Fig. 8", "how long messages wait at the receiver"),
    Published("page-busy", "Fig. 13", "page load beside bulk"),
    Published("sctp", "Fig. 14", "SCTP pipes against TCP pipes at 1 % loss"),
    Published("host-cc", "Fig. 15", "a bound on the bytes in flight over all pipes"),
    Published("paths-file", "DEMS, Fig. 5.10", "one file over two paths, by path policy"),
    Published("paths-split", "DEMS, Fig. 5.1", "one file over two paths, by the share of either"),
    Published("paths-rates", "DEMS, Fig. 5.13", "one file over two paths, by the rate of either"),
    Published("paths-vary", "DEMS, 5.6.3", "one file over two paths that vary, by path policy"),
    Published("paths-flows", "MPFlex, Fig. 4.3", "one file over two paths, against MPTCP"),
    Published("paths-short-flows", "MPFlex, Fig. 4.4", "short flows over two paths"),
    Published("paths-txdelay", "MPFlex, Fig. 4.7", "one file over paths of 20 and 70 ms"),
    Published("paths-proxy", "MPFlex, Fig. 4.8", "files by where the proxy is"),
    Published("paths-reinject", "MPFlex, 4.3.4", "one file over two paths, by what goes again"),
    Published("overhead", "§6.7", "user bytes over the pipes' bytes"),
)


def title(row: str) -> str:
    """Where and what, for a heading; an experiment that nobody published keeps its name."""
    for it in ROWS:
        if it.row == row:
            return f"{it.where}: {it.what}"
    return row


def what(row: str) -> str:
    """Without where it was published; empty where no row is called so."""
    return next((it.what for it in ROWS if it.row == row), "")
