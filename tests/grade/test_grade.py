# SPDX-License-Identifier: MIT
"""The grader is graded: right remote proxies pass, wrong ones are caught where they deserve it."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.grade import report, runner, wire
from tests.grade.cli import CHECKS_IN_ORDER
from tests.grade.registry import EXTRA, LEVELS
from tests.grade.wrong_rps.faults import FAULTS

ROOT = Path(__file__).parents[2]
BUILD = Path(os.environ.get("TM3_BUILD") or ROOT / "build")
PYTHON = [sys.executable, "-s", "-S"]  # nothing but the standard library, and a quick start
WRONG_RPS = [*PYTHON, str(ROOT / "tests/grade/wrong_rps")]
GRADE = [*PYTHON, str(ROOT / "tests/grade")]


def start_grade(rp: list[str], *options: str) -> subprocess.Popen[str]:
    command = [*GRADE, "--rp", " ".join(rp), "--json", "--jobs", "4", *options]
    return subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


# What passes takes no longer for it; on a busy machine a start of Python may take 5 s.
PATIENT = ("--patience", "4")


def answer_of(grading: subprocess.Popen[str]) -> dict:
    out, err = grading.communicate(timeout=100)
    assert out, f"exit status {grading.returncode}: {err}"
    return json.loads(out)


def failures(answer: dict) -> dict[str, str]:
    return {c["name"]: c["seen"] for c in answer["checks"] if c["status"] == runner.FAIL}


def wait_for(condition: Callable[[], object], what: str, seconds: float = 10.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"waited {seconds:g} s for {what}"
        time.sleep(0.01)


# -- right ones -----------------------------------------------------------------------------------


def test_reference_reaches_level_4() -> None:
    grading = start_grade(WRONG_RPS, "--level", "4", *PATIENT)
    answer = answer_of(grading)
    assert failures(answer) == {}
    assert answer["level"] == 4
    assert all(c["status"] == runner.PASS for c in answer["checks"]), "some checks were not run"
    assert grading.returncode == 0


def test_our_rp_reaches_level_4_and_all_extras() -> None:
    rp = BUILD / "rp"
    assert rp.exists(), f"{rp} is not there: make"
    grading = start_grade([str(rp)], *PATIENT)
    answer = answer_of(grading)
    assert failures(answer) == {}
    assert answer["level"] == 4
    extras = [c for c in answer["checks"] if c["level"] == EXTRA]
    assert extras and all(c["status"] == runner.PASS for c in extras)
    assert grading.returncode == 0


# -- wrong ones -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Caught:
    level: int  # that it reaches all the same
    by: str  # the check that fails
    words: str  # a pattern, in what was seen


CAUGHT = {
    "never-listens": Caught(0, "starts", "RP did not listen on port 6000 within"),
    "exits": Caught(0, "starts", "RP exited with status 3"),
    "leaves-children": Caught(0, "starts", "RP exited with status 1"),
    "crash-on-syn": Caught(0, "connects", r"RP exited with signal 11 \(SIGSEGV\)"),
    "hang": Caught(0, "connects", "in vain for RP to connect"),
    "spin": Caught(0, "connects", "in vain for RP to connect"),
    "flood": Caught(0, "download", "nothing more was sent"),
    "port-big-endian": Caught(0, "connects", "the port is little-endian"),
    "address-backwards": Caught(0, "connects", "the address is sent as it is written"),
    "length-without-header-uplink": Caught(0, "upload", "byte 45 is wrong: 01 00 02 00 00 00"),
    "length-without-header-downlink": Caught(0, "download", "the 8 header bytes included"),
    "drops-4104": Caught(0, "largest", "to get 40960 bytes"),
    "no-carry": Caught(0, "cut-anywhere", "cut after byte 1 of"),
    "one-message-a-read": Caught(0, "back-to-back", "in vain"),
    "never-sends-fin": Caught(0, "server-fin", "in vain for RP's FIN"),
    "fin-always-88": Caught(0, "server-reset", "says 0x88, not 0x99"),
    "numbers-from-1": Caught(0, "download", "numbers start at 0"),
    "empty-message-at-end": Caught(0, "server-fin", "the length field is 8"),
    "short-writes-to-server": Caught(0, "slow-server", "server of connection 1"),
    "short-writes-to-pipe": Caught(0, "slow-pipe", "is wrong|in vain|the length field is"),
    "early-data-lost": Caught(0, "back-to-back", r"\(0 came\)"),
    "one-connection": Caught(0, "sequential", "RP exited with status 0"),
    "ignores-numbers": Caught(1, "permutations", "messages sent in the order"),
    "fin-at-once": Caught(1, "gap-held", "though message 1 had not arrived"),
    "syn-must-be-first": Caught(1, "data-before-syn", r"messages sent in the order \(1, 0"),
    "one-buffer-for-all-pipes": Caught(1, "cut-on-two-pipes", "cut after byte 1"),
    "one-pipe": Caught(1, "blocked-pipe", "with pipe 1 of 3 not read, the other two brought"),
    "waits-for-blocked-pipe": Caught(1, "blocked-pipe", "not read, the other two brought"),
    "blocks-in-connect": Caught(2, "slow-connect", "while another connection's handshake waits"),
    "blocks-in-send": Caught(2, "stalled-server", "in vain for the echo"),
    "100-connections": Caught(2, "256-connections", r"\(156 are not there"),
    "failed-connect-untold": Caught(3, "refused", "which cannot be connected"),
    "ignores-reason": Caught(3, "lp-reset", "an orderly end, not a reset"),
    "keeps-old-state": Caught(3, "id-reused", "in vain for the echo"),
    "dies-of-sigpipe": Caught(3, "server-gone", r"signal 13 \(SIGPIPE\)"),
    "1000-connections": Caught(3, "5000-connections", "are not there"),
    "never-closes": Caught(3, "descriptors", "of 600: RP exited with status 1"),
}
HARMLESS = {"print-endlessly"}


def test_every_fault_is_played() -> None:
    assert set(FAULTS) == set(CAUGHT) | HARMLESS


# Each level's together. Where pipes take turns strictly, nothing is left of another choice.
ALONE = "one-pipe"
TOGETHER = [
    [name for name, caught in reversed(CAUGHT.items()) if caught.level == level and name != ALONE]
    for level in (1, 2, 3)
]


@pytest.mark.parametrize("faults", [[ALONE], *TOGETHER], ids="+".join)
def test_faults_leave_the_levels_below(faults: list[str]) -> None:
    (level,) = {CAUGHT[name].level for name in faults}
    answer = answer_of(
        start_grade([*WRONG_RPS, "--fault", "+".join(faults)], "--level", str(level), *PATIENT)
    )
    assert failures(answer) == {}
    assert answer["level"] == level


@pytest.mark.parametrize("fault", CAUGHT)
def test_fault_is_caught(fault: str) -> None:
    """The named check of its level fails."""
    caught = CAUGHT[fault]
    rp = [*WRONG_RPS, "--fault", fault]
    by_name = start_grade(rp, "--check", caught.by, "--patience", "0.4")
    seen = failures(answer_of(by_name))
    if not re.search(caught.words, seen.get(caught.by, "")):  # too little, on a busy machine
        by_name = start_grade(rp, "--check", caught.by, "--patience", "4")
        seen = failures(answer_of(by_name))
    assert re.search(caught.words, seen[caught.by])
    assert by_name.returncode == 1
    (level,) = (check.level for check in CHECKS_IN_ORDER if check.name == caught.by)
    assert level == caught.level + 1


def test_talk_does_no_harm() -> None:
    rp = [*WRONG_RPS, "--fault", "print-endlessly"]
    answer = answer_of(start_grade(rp, "--level", "1", *PATIENT))
    assert failures(answer) == {}


def test_a_level_not_reached_ends_the_grading() -> None:
    grading = start_grade([*WRONG_RPS, "--fault", "crash-on-syn"])
    answer = answer_of(grading)
    assert answer["level"] == 0
    assert "connects: RP exited with signal 11 (SIGSEGV)" in answer["why_not_next"]
    assert {c["status"] for c in answer["checks"] if c["level"] > 1} == {runner.NOT_RUN}
    assert grading.returncode == 1


def test_what_rp_printed_is_shown() -> None:
    command = [*GRADE, "--rp", " ".join([*WRONG_RPS, "--fault", "exits"])]
    done = subprocess.run(
        [*command, "--check", "starts", "--verbose"], capture_output=True, text=True, timeout=30
    )
    assert "| remote_proxy: bind: something is wrong" in done.stdout
    assert done.returncode == 1


# -- nothing stays behind -------------------------------------------------------------------------


def running_with(mark: str) -> list[int]:
    """Processes with this word on their command line."""
    found = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdecimal() or int(folder.name) == os.getpid():
            continue
        try:
            if mark.encode() in (folder / "cmdline").read_bytes().split(b"\0"):
                found.append(int(folder.name))
        except OSError:
            continue
    return found


def marked(fault: str) -> tuple[list[str], str]:
    mark = f"mark={uuid.uuid4().hex}"
    return [*PYTHON, "-X", mark, WRONG_RPS[-1], "--fault", fault], mark


@pytest.mark.parametrize("fault", ["leaves-children", "hang"])
def test_no_process_is_left(fault: str) -> None:
    rp, mark = marked(fault)
    answer_of(start_grade(rp, "--check", "connects", "--patience", "0.3"))
    assert running_with(mark) == []


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_grader_that_is_ended_takes_rp_with_it(how: signal.Signals) -> None:
    rp, mark = marked("hang")
    grading = start_grade(rp, "--check", "connects", "--patience", "10")
    wait_for(lambda: running_with(mark), "RP to run")
    grading.send_signal(how)
    grading.communicate(timeout=10)
    wait_for(lambda: not running_with(mark), "RP to be gone")


# -- where it runs --------------------------------------------------------------------------------


def test_without_namespaces() -> None:
    """On the host's loopback; to be safe from others, that of a namespace made around it."""
    enter = (
        f"import os, sys; sys.path.insert(0, {str(ROOT)!r}); from tests.grade import namespace; "
        "namespace.enter(); os.execv(sys.executable, sys.argv[1:])"
    )
    names = ["starts", "sequential", "server-reset", "unreachable", "connect-times-out"]
    chosen = [word for name in names for word in ("--check", name)]
    command = [*GRADE, "--rp", " ".join(WRONG_RPS), "--host", "--json", *chosen]
    done = subprocess.run(
        [sys.executable, "-c", enter, *command], capture_output=True, text=True, timeout=60
    )
    answer = json.loads(done.stdout)
    statuses = {c["name"]: c["status"] for c in answer["checks"]}
    assert statuses.pop("connect-times-out") == runner.NOT_RUN
    assert set(statuses.values()) == {runner.PASS}, failures(answer)
    assert "no network namespaces (--host)" in done.stderr
    assert answer["isolation"] == "the host's loopback"


@pytest.fixture
def public() -> Iterator[Path]:
    """A folder that every user can read, with the grader in it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        shutil.copytree(
            ROOT / "tests/grade", folder / "grade", ignore=shutil.ignore_patterns("__pycache__")
        )
        yield folder


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_without_root(public: Path) -> None:
    """As an ordinary user: in namespaces if the kernel lets one have them, and not as root."""
    script = public / "rp"
    script.write_text("#!/bin/sh\nid -u >&2\nexit 9\n")
    script.chmod(0o755)
    command = ["/usr/bin/python3", "-B", str(public / "grade"), "--rp", str(script), "--json"]
    done = subprocess.run(
        ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *command],
        capture_output=True,
        text=True,
        timeout=60,
    )
    if "no network namespaces" in done.stderr:
        pytest.skip(f"ordinary users cannot have them here: {done.stderr.strip()}")
    assert done.stderr == ""
    answer = json.loads(done.stdout)
    assert answer["isolation"] == "network namespaces without root"
    assert answer["checks"][0]["seen"].startswith("RP exited with status 9")
    assert answer["checks"][0]["output"] == "65534\n"


# -- the command line -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], "which remote proxy?"),
        (["--rp", "/no/such/program"], "not a program that can be run"),
        (["--rp", "'"], "--rp: No closing quotation"),
        (["--rp", "true", "--check", "uplaod"], "there is no check 'uplaod'"),
        (["--rp", "true", "--level", "5"], "invalid choice: 5"),
        (["--rp", "true", "--patience", "0"], "--patience must be more than 0"),
        (["--rp", "true", "--jobs", "-1"], "--jobs must be at least 1"),
        (["--rp", "true", "--check", "upload", "--level", "1"], "do not go together"),
    ],
)
def test_wrong_usage(options: list[str], words: str) -> None:
    done = subprocess.run([*GRADE, *options], capture_output=True, text=True, timeout=30)
    assert done.returncode == 2
    assert words in done.stderr
    assert done.stdout == ""


def test_list() -> None:
    done = subprocess.run([*GRADE, "--list"], capture_output=True, text=True, timeout=30)
    assert [line.split()[1] for line in done.stdout.splitlines()] == [
        check.name for check in CHECKS_IN_ORDER
    ]
    assert done.returncode == 0


def test_json_to_a_file(tmp_path: Path) -> None:
    target = tmp_path / "grade.json"
    command = [*GRADE, "--rp", " ".join(WRONG_RPS), "--check", "starts", "--json", str(target)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30)
    assert done.returncode == 0
    assert json.loads(target.read_text())["checks"][0]["status"] == runner.PASS
    assert "starts" in done.stdout


# -- the level, and the messages ------------------------------------------------------------------


def results(*failed: str) -> list[runner.Result]:
    return [
        runner.Result(
            check.name,
            check.level,
            check.title,
            runner.FAIL if check.name in failed else runner.PASS,
            "seen",
        )
        for check in CHECKS_IN_ORDER
    ]


@pytest.mark.parametrize(
    ("failed", "level"),
    [
        ((), 4),
        (("upload",), 0),
        (("gap-held",), 1),
        (("256-connections",), 2),
        (("refused",), 3),
        (("refused", "upload"), 0),
        (("two-sessions",), 4),
    ],
)
def test_level_is_reached_when_it_and_all_below_passed(failed: tuple[str, ...], level: int) -> None:
    verdict = report.judge(results(*failed))
    assert verdict.level == level
    assert (verdict.why_not_next == "") == (level == 4)


def test_every_level_has_checks_with_names_of_their_own() -> None:
    assert {check.level for check in CHECKS_IN_ORDER} == {*LEVELS, EXTRA}
    names = [check.name for check in CHECKS_IN_ORDER]
    assert len(names) == len(set(names))


def test_messages_byte_by_byte() -> None:
    """As the protocol's table has them; port 8080 is 0x1F90."""
    assert wire.syn(0x1234, "10.1.2.3", 8080).hex() == "341200000000ffff0a010203901f"
    assert wire.data(7, 0x01020304, b"abc").hex() == "0700040302010b00616263"
    assert wire.fin(7, 2, wire.BY_RESET).hex() == "070002000000feff99"


def test_reader_does_not_care_about_cuts() -> None:
    sent = wire.data(1, 0, b"x") + wire.data(2, 0, b"y" * 4096) + wire.fin(1, 1, wire.BY_FIN)
    whole = list(wire.Reader().feed(sent))
    assert [(m.conn, m.number, m.reason, len(m.payload)) for m in whole] == [
        (1, 0, 0, 1),
        (2, 0, 0, 4096),
        (1, 1, 0x88, 0),
    ]
    for cut in range(len(sent)):
        reader = wire.Reader()
        assert [*reader.feed(sent[:cut]), *reader.feed(sent[cut:])] == whole


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (wire.HEADER.pack(1, 0, 8), "the length field is 8"),
        (wire.HEADER.pack(1, 0, 4105), "the length field is 4105"),
        (wire.HEADER.pack(1, 0, 0xFFFD), "the length field is 65533"),
        (wire.data(0, 0, b"x"), "the connection id is 0"),
        (wire.syn(1, "1.2.3.4", 5), "a SYN, which only LP may send"),
        (wire.fin(1, 0, 0x77), "reason 0x77"),
    ],
)
def test_reader_refuses(message: bytes, words: str) -> None:
    reader = wire.Reader()
    assert len(list(reader.feed(wire.data(1, 0, b"fine")))) == 1
    with pytest.raises(wire.Malformed, match=words) as refused:
        list(reader.feed(message))
    assert "at byte 12 " in str(refused.value)
