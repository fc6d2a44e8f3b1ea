# SPDX-License-Identifier: MIT
"""Records captures of real proxies and applications over a lossy path.

    python -m dissector.record experiment1 tm3.pcap

Client and local proxy, a router that drops packets, remote proxy and servers: three network
namespaces that are gone when the recording is over. What is captured is what the local proxy's
interface sees, so on the downlink it is what the receiver gets: lost segments are missing.
Needs root, build/rp and build/lp.
"""

import argparse
import shutil
import socket
import struct
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.relay import servers
from tests.relay.netns import Namespace, namespace, veth
from tests.relay.programs import finish
from tests.relay.proxies import local_proxy, remote_proxy
from tests.relay.waiting import until

CLIENT, SERVER = "10.8.1.2", "10.8.2.2"
SOCKS = ["curl", "--silent", "--show-error", "--socks5", "127.0.0.1:1080"]
HANDOUT_PORT = 6001
BASELINE, EXTENSION = 6000, 6010  # ports of rp
RATE_MBPS = 10
SO_RCVBUFFORCE, SO_TIMESTAMPNS = 33, 35


@dataclass(frozen=True)
class Lab:
    near: Namespace
    far: Namespace
    tmp: Path

    def curl(self, *arguments: str, status: int | None = 0, seconds: float = 60.0) -> None:
        code, _, said = finish([*SOCKS, *arguments], self.near, seconds)
        if status is not None and code != status:
            raise RuntimeError(
                f"curl {' '.join(arguments)} ended with {code}, not {status}: {said}"
            )


def path_with_loss(
    near: Namespace, middle: Namespace, far: Namespace, loss: float, port: int
) -> None:
    """Two links and a router between them that is slow and drops some of the pipes' packets."""
    veth(near, f"{CLIENT}/24", middle, "10.8.1.1/24", name="access")
    veth(middle, "10.8.2.1/24", far, f"{SERVER}/24", name="core")
    # Loss is to act on packets, not on what offloading makes of them.
    for ns, device in (
        (near, "access-l"), (middle, "access-r"), (middle, "core-l"), (far, "core-r"),
    ):  # fmt: skip
        ns.run("ethtool", "-K", device, "tso", "off", "gso", "off", "gro", "off")
    for device in ("access-r", "core-l"):
        rate = ("rate", f"{RATE_MBPS}mbit", "burst", "8k", "latency", "100ms")
        middle.run("tc", "qdisc", "add", "dev", device, "root", "tbf", *rate)
    near.ip("route", "add", "default", "via", "10.8.1.1")
    far.ip("route", "add", "default", "via", "10.8.2.1")
    middle.run("sysctl", "-q", "-w", "net.ipv4.ip_forward=1")
    middle.nft(
        "table ip loss { chain forward { type filter hook forward priority 0;\n"
        f"tcp sport {port} numgen random mod 1000 < {round(loss * 1000)} drop\n"
        f"tcp dport {port} numgen random mod 1000 < {round(loss * 1000)} drop\n}}\n}}\n"
    )


class Recorder(threading.Thread):
    """Writes what passes a device to a pcap file, until it is told to stop and has caught up.

    Device "" is all of them."""

    def __init__(self, ns: Namespace, device: str, path: Path, port: int = BASELINE) -> None:
        super().__init__(name="recorder")
        self._port = struct.pack(">H", port)
        with ns.entered():
            self._packets = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0003))
            if device:
                self._packets.bind((device, 0x0003))
        self._packets.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        self._packets.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 64 << 20)
        self._packets.settimeout(0.2)
        self._out = path.open("wb")
        self._out.write(struct.pack("<IHHIIII", 0xA1B2C3D4, 2, 4, 0, 0, 262144, 1))
        self._stop_asked = threading.Event()

    def run(self) -> None:
        while True:
            try:
                packet, ancillary, _, where = self._packets.recvmsg(65536, 64)
            except TimeoutError:
                if self._stop_asked.is_set():
                    break
                continue
            if self._port not in (packet[34:36], packet[36:38]):  # source, destination
                continue
            if (where[0], where[2]) == ("lo", socket.PACKET_OUTGOING):  # it comes in as well
                continue
            second, nanosecond = struct.unpack("<qq", ancillary[0][2][:16])
            head = struct.pack("<IIII", second, nanosecond // 1000, len(packet), len(packet))
            self._out.write(head + packet)

    def finish(self) -> None:
        self._stop_asked.set()
        self.join(timeout=30)
        self._packets.close()
        self._out.close()


@contextmanager
def two_paths(capture: Path, recording: "Recording") -> Iterator[Lab]:
    """Two links of 4 and 3 Mbit/s, and pipes over MPTCP that use both."""
    tmp = Path(tempfile.mkdtemp(prefix="tm3-record-"))
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, tmp)
        near, far = (stack.enter_context(namespace(name)) for name in ("near", "far"))
        veth(near, "10.8.2.1/24", far, f"{SERVER}/24", name="first")
        veth(near, "10.8.3.1/24", far, "10.8.3.2/24", name="other")
        for ns, end in ((near, "l"), (far, "r")):
            ns.run("sysctl", "-q", "net.mptcp.enabled=1")
            ns.run("ip", "mptcp", "limits", "set", "subflow", "2", "add_addr_accepted", "2")
            for device, mbps in ((f"first-{end}", 4), (f"other-{end}", 3)):
                ns.run("ethtool", "-K", device, "tso", "off", "gso", "off", "gro", "off")
                rate = ("rate", f"{mbps}mbit", "burst", "8k", "latency", "60ms")
                ns.run("tc", "qdisc", "add", "dev", device, "root", "tbf", *rate)
        far.run("ip", "mptcp", "endpoint", "add", "10.8.3.2", "dev", "other-r", "signal")
        recorder = Recorder(near, "", capture)
        stack.callback(recorder.finish)
        recorder.start()
        pipes, over = recording.pipes, ("--pipe", "mptcp")
        beside = ("--permit", SERVER)
        stack.enter_context(remote_proxy(far, tmp, *beside, *over, pipes=pipes, asan=False))
        arguments = ("--redirect", "127.0.0.1:6003", *over)
        stack.enter_context(local_proxy(near, tmp, *arguments, to=SERVER, pipes=pipes, asan=False))
        # Each pipe has a subflow on either link.
        subflows = ("ss", "-Htn", "state", "established", "dst", SERVER, "or", "dst", "10.8.3.2")
        until("all subflows", lambda: len(near.run(*subflows).splitlines()) >= 2 * pipes)
        yield Lab(near, far, tmp)


@contextmanager
def lab(capture: Path, recording: "Recording") -> Iterator[Lab]:
    tmp = Path(tempfile.mkdtemp(prefix="tm3-record-"))
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, tmp)
        near, middle, far = (
            stack.enter_context(namespace(name)) for name in ("near", "middle", "far")
        )
        port = EXTENSION if recording.extended else BASELINE
        path_with_loss(near, middle, far, recording.loss, port)
        recorder = Recorder(near, "access-l", capture, port)
        stack.callback(recorder.finish)
        recorder.start()
        # Paced segments carry the time they were to leave; cubic's carry that they left.
        chosen, pipes = ("--pipe-policy", recording.policy, "--cc", "cubic"), recording.pipes
        beside = ("--permit", SERVER)  # rp and the server share a host
        extended = ("--extended", "0.0.0.0") if recording.extended else ()
        extend = ("--extend", "always" if recording.extended else "never")
        at_rp = (*beside, *extended, *chosen)
        stack.enter_context(remote_proxy(far, tmp, *at_rp, pipes=pipes, asan=False))
        arguments = ("--redirect", "127.0.0.1:6003", *extend, *chosen)
        stack.enter_context(local_proxy(near, tmp, *arguments, to=SERVER, pipes=pipes, asan=False))
        yield Lab(near, far, tmp)


def serve_responses(listener: socket.socket, count: int, size: int) -> None:
    """The hand-out's server: `count` responses of `size` bytes, each for one byte."""
    conn, _ = listener.accept()
    with conn:
        for number in range(count):
            if not conn.recv(1):
                return
            conn.sendall(bytes([65 + number]) * size)


def experiment1(there: Lab) -> None:
    """The hand-out's first experiment: ten responses of 4096 bytes from a server beside RP."""
    there.near.nft(
        "table ip tm3 { chain output { type nat hook output priority -100;\n"
        f"ip daddr {SERVER} tcp dport {HANDOUT_PORT} redirect to :6003\n}}\n}}\n"
    )
    with there.far.open_socket() as listener:
        listener.bind((SERVER, HANDOUT_PORT))
        listener.listen()
        server = threading.Thread(target=serve_responses, args=(listener, 10, 4096))
        server.start()
        with there.near.connect((SERVER, HANDOUT_PORT)) as client:
            for _ in range(10):
                client.sendall(b"?")
                left = 4096
                while left:
                    left -= len(client.recv(left))
        server.join(timeout=30)


def make_site(root: Path) -> None:
    root.mkdir()
    links = "".join(f'<img src="/picture{n}.png">' for n in range(4))
    (root / "index.html").write_text(f"<html><body>TM3 {links}</body></html>\n")
    for number in range(4):
        (root / f"picture{number}.png").write_bytes(bytes([number + 1]) * (3000 + 4000 * number))
    (root / "large").write_bytes(bytes(range(256)) * 500)


def web(there: Lab) -> None:
    """A page and its pictures, loaded at the same time over SOCKS."""
    make_site(there.tmp / "site")
    with servers.nginx(there.far, there.tmp, root=there.tmp / "site", address=SERVER, port=80):
        there.curl(f"http://{SERVER}/index.html")
        pictures = [f"http://{SERVER}/picture{n}.png" for n in range(4)]
        there.curl("--parallel", "--parallel-immediate", *pictures, "--output", "/dev/null")


def download(there: Lab) -> None:
    """One file over all pipes."""
    make_site(there.tmp / "site")
    with servers.nginx(there.far, there.tmp, root=there.tmp / "site", address=SERVER, port=80):
        there.curl(f"http://{SERVER}/large", "--output", "/dev/null")


def page(there: Lab) -> None:
    """Part of a file, then a page."""
    make_site(there.tmp / "site")
    with servers.nginx(there.far, there.tmp, root=there.tmp / "site", address=SERVER, port=80):
        part = ("--range", "0-99999", "--output", "/dev/null")
        there.curl(f"http://{SERVER}/large", *part)
        there.curl(f"http://{SERVER}/index.html", "--output", "/dev/null")


def endings(there: Lab) -> None:
    """A refused connection, a client that gives up in mid-transfer, an orderly end."""
    make_site(there.tmp / "site")
    with servers.nginx(there.far, there.tmp, root=there.tmp / "site", address=SERVER, port=80):
        there.curl(f"http://{SERVER}:81/", status=None)
        slow = ("--limit-rate", "1K", "--max-time", "0.5", "--output", "/dev/null")
        there.curl(f"http://{SERVER}/large", *slow, status=28)
        there.curl(f"http://{SERVER}/index.html")


@dataclass(frozen=True)
class Recording:
    play: Callable[[Lab], None]
    pipes: int = 4
    loss: float = 0.02
    policy: str = "least"
    extended: bool = False
    lab: Callable[[Path, "Recording"], AbstractContextManager[Lab]] = lab


RECORDINGS = {
    "experiment1": Recording(experiment1),
    "web": Recording(web, loss=0.04),
    "download": Recording(download, loss=0.04, policy="rr"),
    "endings": Recording(endings, pipes=2, loss=0.01),
    "extension": Recording(web, loss=0.04, extended=True),
    "mptcp": Recording(page, pipes=1, lab=two_paths),
}


def main() -> int:
    parser = argparse.ArgumentParser(description="Records a capture of real proxies.")
    parser.add_argument("name", choices=RECORDINGS)
    parser.add_argument("capture", type=Path)
    arguments = parser.parse_args()
    recording = RECORDINGS[arguments.name]
    with recording.lab(arguments.capture, recording) as there:
        recording.play(there)
    print(f"{arguments.capture}: {arguments.capture.stat().st_size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
