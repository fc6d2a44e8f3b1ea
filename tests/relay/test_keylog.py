# SPDX-License-Identifier: MIT
"""--keylog: Wireshark reads encrypted pipes with that file, and not without it."""

import re
import shutil
from pathlib import Path

import pytest

from dissector.record import EXTENSION, Recorder
from tests.dissector import tshark
from tests.relay.ends import echo, serving
from tests.relay.keyed import FORWARD, UP, Keys, key_file, made, needs_tls, served
from tests.relay.netns import Namespace
from tests.relay.programs import binary, finish
from tests.relay.proxies import local_proxy, remote_proxy

WARNING = "--keylog: whoever can read .* can read all that goes over the pipes"
PIPES = 4
NO_TSHARK = pytest.mark.skipif(tshark.missing() is not None, reason=str(tshark.missing()))


@pytest.fixture(autouse=True)
def encrypting() -> None:
    needs_tls()


@pytest.fixture
def keys(tmp_path: Path) -> Keys:
    line = made("laptop")
    return Keys(
        line,
        key_file(tmp_path / "rp.keys", line),
        key_file(tmp_path / "lp.key", line),
        tmp_path,
    )


def recorded(box: Namespace, tmp_path: Path, keys: Keys, end: str) -> tuple[Path, Path]:
    """A capture of a session from its first to its last packet, and the file that `end` wrote."""
    capture, log = tmp_path / "pipes.pcap", tmp_path / "keys.log"
    option = {end: ("--keylog", str(log))}
    recorder = Recorder(box, "lo", capture, EXTENSION)
    recorder.start()
    try:
        with (
            serving(box, echo, ("127.0.0.1", 8000)),
            remote_proxy(box, tmp_path, *keys.rp, *option.get("rp", ())) as rp,
            local_proxy(box, tmp_path, *keys.lp, *option.get("lp", ()), *FORWARD, ready=UP) as lp,
        ):
            served(box)
            said = {"rp": rp, "lp": lp}
            assert said.pop(end).lines(WARNING)
            assert not said.popitem()[1].lines("keylog")
    finally:
        recorder.finish()
    return capture, log


@NO_TSHARK
@pytest.mark.parametrize("end", ["rp", "lp"])
def test_a_capture_is_read_with_the_file(
    box: Namespace, tmp_path: Path, keys: Keys, end: str
) -> None:
    capture, log = recorded(box, tmp_path, keys, end)
    with_file = ("-o", f"tls.keylog_file:{log}")
    rows = tshark.field_values(capture, ["_ws.col.Info"], *with_file, "-Y", "tm3")
    said = "\n".join(info for (info,) in rows)
    for word, times in (("HELLO", PIPES), ("WELCOME", PIPES), ("OPEN", 1), ("SYNACK", 1)):
        assert said.count(f"{word}: " if times > 1 else f"{word} 0 of 1") == times, said
    assert "to 127.0.0.1:8000" in said, said
    # Whether pipes end with an alert or a reset depends on who is faster; the sample has alerts.
    assert tshark.field_values(capture, ["frame.number"], *with_file, "-Y", "tls.handshake")
    both = "tm3 && (tls.handshake || tls.alert_message)"
    assert not tshark.field_values(capture, ["frame.number"], *with_file, "-Y", both)
    wrong = "tm3.expert || _ws.malformed"
    assert not tshark.field_values(capture, ["frame.number"], *with_file, "-Y", wrong)
    # Without the file there is TLS, and nothing of what is in it.
    assert not tshark.field_values(capture, ["frame.number"], "-Y", "tm3")
    assert tshark.field_values(capture, ["frame.number"], "-Y", "tls.app_data")


def test_keylog_is_said_and_for_its_owner_alone(box: Namespace, tmp_path: Path, keys: Keys) -> None:
    log = tmp_path / "keys.log"
    with (
        serving(box, echo, ("127.0.0.1", 8000)),
        remote_proxy(box, tmp_path, *keys.rp, "--keylog", str(log)) as rp,
        local_proxy(box, tmp_path, *keys.lp, *FORWARD, ready=UP),
    ):
        served(box)
        assert rp.lines(WARNING)
    lines = log.read_text().splitlines()
    assert len([line for line in lines if line.startswith("CLIENT_TRAFFIC_SECRET_0 ")]) == 4
    assert all(re.fullmatch(r"[A-Z_0-9]+ [0-9a-f]{64} [0-9a-f]{64}", line) for line in lines)
    assert log.stat().st_mode & 0o777 == 0o600
    nowhere = tmp_path / "missing" / "keys.log"
    for name, own, rest in (("rp", keys.rp, ["4"]), ("lp", keys.lp, ["127.0.0.1", "4"])):
        argv = [binary(name), *own, "--keylog", str(nowhere), *rest]
        code, _, said = finish(argv, box, 20)
        assert (code, said.splitlines()) == (
            2,
            [f"{name}: --keylog: cannot write {nowhere}: No such file or directory"],
        )
    assert shutil.which("openssl")


def test_a_keylog_in_use_stays(box: Namespace, tmp_path: Path, keys: Keys) -> None:
    log = tmp_path / "keys.log"
    with remote_proxy(box, tmp_path, *keys.rp, "--keylog", str(log)):
        log.write_text("what the first wrote\n")
        code, _, said = finish([binary("rp"), *keys.rp, "--keylog", str(log), "4"], box, 20)
        assert code == 2 and "Address already in use" in said
        assert log.read_text() == "what the first wrote\n"
