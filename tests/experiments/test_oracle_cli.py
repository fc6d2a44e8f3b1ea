# SPDX-License-Identifier: MIT
"""tm3lab oracle: its tables, and the lines that say what is wrong with a question."""

import pytest

from experiments.cli import main

WIFI, LTE = ("--path", "wifi,7.04,25"), ("--path", "lte,9.185,135")
NEAR, FAR = ("--path", "near,1.6,5"), ("--path", "far,4,10")


def told(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, list[list[str]], str]:
    status = main(["oracle", *words])
    said = capsys.readouterr()
    return status, [line.split() for line in said.out.splitlines()], said.err


def test_paths_and_objects(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ("--size", "64KiB,256KiB", "--policies", "minrtt,ecf,one:lte")
    status, rows, err = told(capsys, *LTE, *WIFI, *asked)
    assert (status, err) == (0, "")
    assert rows[1][:4] == ["wifi", "7.04", "25", "0"]
    assert rows[2][:4] == ["lte", "9.185", "135", "96800"]
    assert rows[4] == ["bytes", "optimum", "ms", "minrtt", "ms", "ecf", "ms", "one:lte", "ms"]
    assert rows[5][:2] == ["65536", f"{25 + 65536 / 880:.3f}"]
    assert rows[6][0] == "262144"
    assert rows[6][1] == rows[6][3] == "216.526"
    assert float(rows[6][2]) > 216.526


def test_a_batch(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ("--size", "900,800B", "--batch", "--connections", "rr", "--quantum", "150")
    status, rows, _ = told(capsys, *NEAR, *FAR, *asked, "--policies", "ecf")
    assert status == 0
    assert rows[-2:] == [["900", "11.000", "11.000"], ["800", "9.000", "11.250"]]


def test_a_round_trip_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    """txdelay goes by round trips: at equal ones it sends as much as if delays were equal."""
    asked = ("--size", "10KB", "--policies", "txdelay")
    _, rows, _ = told(capsys, "--path", "near,1.6,5,20", "--path", "far,4,10,20", *asked)
    assert rows[-1] == ["10000", "22.857", f"{10 + 10 / 0.7:.3f}"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((), "oracle: no path: one at least"),
        (("--path", "a"), "oracle: path 'a' is not NAME,MBPS,MS[,RTT_MS]"),
        (("--path", ",1,1"), "oracle: path ',1,1' is not NAME"),
        (("--path", "a,1,1,2,3"), "oracle: path 'a,1,1,2,3' is not NAME"),
        (("--path", "a,fast,1"), "oracle: path 'a,fast,1': rate and times are numbers"),
        (("--path", "a,0,1"), "oracle: path a: a rate of 0 bytes/s is not above 0"),
        (("--path", "a,-2,1"), "oracle: path a: a rate of -250000 bytes/s is not above 0"),
        (("--path", "a,1,-1"), "oracle: path a: a delay of -0.001 s"),
        (("--path", "a,1,5,4"), "oracle: path a: a round trip of 0.004 s is shorter"),
        (("--path", "a,1,1", "--path", "a,2,2"), "oracle: path a: two have that name"),
        (tuple(f"--path=p{i},1,1" for i in range(8)), "oracle: 8 paths: at most 7"),
        ((*WIFI, "--size", "big"), "size: 'big' is no size"),
        ((*WIFI, "--size", "0"), "size: 0 is not from 1"),
        ((*WIFI, "--size", "1,,2"), "size: '' is no size"),
        ((*WIFI, "--policies", "best"), "oracle: path policy best: none of minrtt, rr, "),
        ((*WIFI, "--policies", "one:lte"), "oracle: path policy one:lte: there is no path lte"),
        ((*WIFI, *LTE, "--policies", "split:101"), "101 is not from 0 to 100"),
        ((*WIFI, "--policies", "split:50"), "a split needs two paths, not 1"),
        ((*WIFI, "--connections", "lifo"), "oracle: connection policy lifo: none of fcfs"),
        ((*WIFI, "--speed", "1"), "oracle: --speed: no such argument"),
    ],
)
def test_wrong_questions(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], says: str
) -> None:
    status, rows, err = told(capsys, *words)
    assert (status, rows) == (2, [])
    assert err.startswith("tm3lab: ") and says in err
    assert err.count("\n") == 1
