# SPDX-License-Identifier: MIT
"""Options from a file, and the question whether all is right."""

from pathlib import Path

import pytest

from tests.relay.ends import echo, read_exactly, read_to_end, serving, socks
from tests.relay.netns import Namespace
from tests.relay.programs import binary, finish, program
from tests.relay.proxies import LP_READY, RP_READY, local_proxy

RP_FILE = """\
# rp of the house, as an operator writes it
\tpipes   2

listen 127.0.0.1:6001 \t
  listen\t127.0.0.1:6002
# listen 127.0.0.1:6003
permit 127.0.0.0/8\r
quiet"""

# The text, the line that is wrong, and what is said of it.
WRONG = [
    ("pipes 4\n\n# one\nlisten nonsense\n", 4, "--listen: 'nonsense'"),
    ("pipes 65\nlisten 127.0.0.1\n", None, "PIPES: '65'"),
    ("no-such-option 1\n", 1, "no-such-option: there is no such option; rp --help"),
    ("list 127.0.0.1\n", 1, "list: there is no such option"),  # no shorter forms
    ("--listen 127.0.0.1\n", 1, "options stand here without dashes"),
    ("listen=127.0.0.1\n", 1, "listen=127.0.0.1: there is no such option"),
    ("listen\n", 1, "listen: its value (ADDR[:PORT]) is missing"),
    ("quiet yes\n", 1, "quiet takes no value"),
    ("pipes\n", 1, "pipes: its value is missing"),
    ("help\n", 1, "help: this goes on the command line only"),
    ("config other\n", 1, "config: this goes on the command line only"),
    ("pipes " + "4" * 600 + "\n", 1, "pipes: it is too long"),
    ("stats " + "x" * 5000 + "\n", 1, "--stats: File name too long"),
    ("cc " + "x" * 100 + "\n", 1, "--cc: "),
    ("lambda 2\npipes 4\n", None, "--aggregate dswa only"),
    ("# nothing\n", None, "PIPES is missing"),
    ("", None, "PIPES is missing"),
    ("listen 127.0.0.1\0:6001\n", None, "is not a text"),
    ("\xff\xfe\n", 1, "there is no such option"),
    ("#" * (1 << 20) + "\n", None, "is longer than 1048576 bytes"),
]


def said_of(box: Namespace, *argv: str) -> tuple[int, str, str]:
    return finish([binary("rp"), *argv], box, 10)


def test_both_proxies_by_their_files(box: Namespace, tmp_path: Path) -> None:
    """All of both command lines; what is given again adds up or counts as it came last."""
    (tmp_path / "rp.conf").write_text(RP_FILE)
    with serving(box, echo) as server:
        (tmp_path / "lp.conf").write_text(
            "rp-address 127.0.0.1:6009\nrp-address 127.0.0.1:6002\npipes 2\nextend never\n"
            f"socks off\nredirect off\nforward 7000:127.0.0.1:{server.port}\n"
        )
        rp = [binary("rp"), "--config", str(tmp_path / "rp.conf"), "--verbose"]
        lp = [binary("lp"), f"--config={tmp_path / 'lp.conf'}"]
        with (
            program(box, rp, tmp_path / "rp.log", name="rp", ready=RP_READY),
            program(box, lp, tmp_path / "lp.log", name="lp", ready=LP_READY),
            box.connect(("127.0.0.1", 7000)) as sock,
        ):
            assert box.listening(6001) and box.listening(6002) and not box.listening(6003)
            assert not box.listening(1080)
            sock.sendall(b"by file")
            assert read_exactly(sock, 7) == b"by file"


def test_arguments_of_the_command_line_come_first(box: Namespace, tmp_path: Path) -> None:
    file = tmp_path / "lp.conf"
    file.write_text("pipes 65\nrp-address [::1\n")
    lp = [binary("lp"), "--config", str(file), "--check"]
    assert finish([*lp, "127.0.0.1", "4"], box, 10) == (0, "lp: all is right\n", "")
    code, out, err = finish([*lp, "127.0.0.1"], box, 10)
    assert (code, out) == (2, "") and "PIPES: '65'" in err
    code, out, err = finish(lp, box, 10)
    assert (code, out) == (2, "") and "RP_ADDRESS: '[::1'" in err


def test_what_comes_later_counts(box: Namespace, tmp_path: Path) -> None:
    file = tmp_path / "rp.conf"
    file.write_text("pipes 4\nbinding early\n")
    with_buffer = ("--app-buffer", "64K", "--check")  # goes with early binding alone
    assert said_of(box, "--config", str(file), *with_buffer)[0] == 0
    assert said_of(box, "--binding", "late", "--config", str(file), *with_buffer)[0] == 0
    assert said_of(box, "--config", str(file), "--binding", "late", *with_buffer)[0] == 2


def test_check_opens_nothing(box: Namespace, tmp_path: Path) -> None:
    """Beside the rp that runs by the same file; its statistics stay as they are."""
    stats, file = tmp_path / "rp.jsonl", tmp_path / "rp.conf"
    file.write_text(f"pipes 4\nlisten 127.0.0.1:6001\nstats {stats}\n")
    argv = [binary("rp"), "--config", str(file)]
    with program(box, argv, tmp_path / "rp.log", name="rp", ready=RP_READY):
        before = stats.stat()
        assert said_of(box, "--config", str(file), "--check") == (0, "rp: all is right\n", "")
        assert (stats.stat().st_ino, stats.stat().st_size) == (before.st_ino, before.st_size)


@pytest.mark.parametrize(
    ("wifi", "said"),
    [
        ("127.0.0.1", "lte: this host has no device wwan9; lp begins with the paths that are"),
        (
            "192.0.2.9",
            "wifi: 192.0.2.9 is none of this host's addresses; lte: this host has no device wwan9; "
            "lp waits until one of its paths is there",
        ),
    ],
    ids=["one", "all"],
)
def test_a_path_that_is_gone_for_a_moment_is_right(
    box: Namespace, tmp_path: Path, wifi: str, said: str
) -> None:
    """The lp that runs by this file goes on: it is named, and a reload does not fail by it."""
    file = tmp_path / "lp.conf"
    file.write_text(
        f"rp-address 127.0.0.1\npipes 2\npath wifi,src={wifi}\npath lte,dev=wwan9,backup\n"
    )
    code, out, err = finish([binary("lp"), "--config", str(file), "--check"], box, 10)
    assert (code, out) == (0, "lp: all is right\n"), err
    assert err.count("\n") == 1
    assert err.startswith(f"lp: --path: {said}"), err


def test_a_rule_of_a_file_is_named_later(box: Namespace, tmp_path: Path) -> None:
    """What rp says of a rule are the words of the file, which was closed long before."""
    file = tmp_path / "rp.conf"
    file.write_text("pipes 4\nlisten 127.0.0.1\ndeny 127.0.0.2/31\n")
    argv = [binary("rp"), "--config", str(file)]
    with (
        program(box, argv, tmp_path / "rp.log", name="rp", ready=RP_READY) as rp,
        local_proxy(box, tmp_path),
        socks(box, "127.0.0.2", 80) as sock,
    ):
        assert read_to_end(sock, 5).how == "reset"
        rp.expect(r"127\.0\.0\.2:80 denied: --deny 127\.0\.0\.2/31$")


@pytest.mark.parametrize(
    ("text", "line", "named"), WRONG, ids=[text[:20].encode("unicode_escape").decode()
                                           for text, _, _ in WRONG]
)  # fmt: skip
def test_what_is_wrong_in_a_file(
    box: Namespace, tmp_path: Path, text: str, line: int | None, named: str
) -> None:
    file = tmp_path / "rp.conf"
    file.write_bytes(text.encode("latin-1"))
    code, out, err = said_of(box, "--config", str(file))
    assert (code, out) == (2, ""), err
    assert err.count("\n") == 1 and named in err, err
    assert err.startswith(f"rp: {file}:{line}: " if line else "rp: "), err


@pytest.mark.parametrize("file", ["/nosuch/rp.conf", "/etc", "/dev/zero"])
def test_a_file_that_cannot_be_read(box: Namespace, file: str) -> None:
    code, out, err = said_of(box, "--config", file, "4")
    assert (code, out) == (2, "") and err.startswith(f"rp: --config: {file}: ")
