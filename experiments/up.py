# SPDX-License-Identifier: MIT
"""A lab to look around in: Mininet's prompt, both proxies running, gone with the prompt."""

import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from mininet.cli import CLI

from experiments.keeper import guarded
from experiments.labs import Labs
from experiments.live_run import LiveRun
from experiments.prepare import prepared
from experiments.watch.link import Links
from experiments.watch.server import Server
from experiments.watch.watched import Watched
from experiments.workloads import outage
from topologies.addresses import OF_PIPES, SERVER
from topologies.parameter import Params


class Prompt(CLI):
    """Mininet's, where Ctrl-C ends a command, and the lab where there is none."""

    prompt = "tm3lab> "

    def __init__(self, made: LiveRun, befalls: outage.Outage, undone: ExitStack) -> None:
        self.befalls, self.undone = befalls, undone
        super().__init__(made.lab.net)

    def do_outage(self, line: str) -> None:
        """outage EVENT: something befalls the pipes, as in `tm3lab run recovery`.

        silent: packets of one pipe vanish; reset: it gets a RST; resets: so does one every 200 ms,
        for 5 s; dark: nothing gets through for 3 s; nat: all present pipes are silent, new ones
        not; address: the client has another address until the prompt ends."""
        event = line.strip()
        if event not in outage.EVENTS:
            print(f"one of {', '.join(outage.EVENTS)}; help outage says what they are")
            return
        before = set(self.befalls.dead)
        self.befalls.befall(event, self.undone, 0.2, 3.0, time.monotonic() + 5.0)
        ports = ", ".join(map(str, sorted(self.befalls.dead - before)))
        print(f"{event}: " + (f"pipes from port {ports}" if ports else "done"))

    def run(self) -> None:
        try:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            self.cmdloop()
        except KeyboardInterrupt:
            print()
        finally:
            signal.signal(signal.SIGINT, signal.SIG_DFL)


def welcome(made: LiveRun, url: str | None) -> str:
    lab, pair = made.lab, made.pair
    client, preset = lab.client.namespace, made.params["preset"]
    filter_ = f"tcp and ({OF_PIPES})" if pair else "tcp"
    capture = f"nsenter --net={client} tcpdump -U -w - -i client-eth0 '{filter_}'"
    wireshark = "wireshark -k -i - -C TM3"
    lines = [
        "",
        f"client {lab.client.IP()} == {preset} == rp {lab.rp.IP()} == server {SERVER}",
        *_of_pipes(made),
        *([f"to see all of it, and to turn the last mile: {url}"] if url else []),
        "",
        "in another terminal, to see what goes over the last mile:",
        f"  sudo {capture} | {wireshark}",
        f"  sudo {capture} | tshark -r - -X lua_script:dissector/tm3.lua -Y tm3",
        "(make install-dissector puts the dissector and the profile TM3 into place)",
        "",
        "here, for instance:",
        "  server python3 -m http.server 80 &",
        f"  client curl -sS -o /dev/null -w '%{{time_total}} s\\n' http://{SERVER}/",
        "  client ss -tin",
        f"other programs: sudo nsenter --net={client} ...",
        "exit, Ctrl-D or Ctrl-C ends it all",
        "",
    ]
    return "\n".join(lines)


def _of_pipes(made: LiveRun) -> list[str]:
    if made.pair is None:
        return ["no pipes: the client reaches the server directly"]
    return [
        f"{made.pair.pipes} pipes from lp in client to rp in rp; every TCP connection of client "
        "goes through them",
        f"logs and statistics: {made.folder}",
        f"kill -USR1 {made.pair.rp.pid} has rp tell its pipes and connections in rp.log there",
        "outage silent, outage reset, ... does something to the pipes; help outage says what",
    ]


@contextmanager
def watched(made: LiveRun, server: Server | None) -> Iterator[str | None]:
    """The page's address, where there is a server that shall serve it."""
    if server is None:
        yield None
        return
    pipes = f"{made.pair.pipes} pipes" if made.pair else "no pipes"
    server.watched = Watched(made.folder, f"{made.params['preset']}, {pipes}")
    server.links = Links(made.lab)
    with server.running():
        yield server.url


def up(params: Params, seed: int, server: Server | None = None) -> None:
    """Until the prompt ends. Where there is no prompt, Ctrl-C and other signals end this process
    at once, and never its tidying: that is its keeper's then."""
    folder = Path(tempfile.mkdtemp(prefix="tm3lab-up-"))
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        with guarded(folder), Labs() as labs:
            with (
                prepared(labs, params, seed, folder, float("inf"), keep_pcaps=False) as made,
                outage.possible(made.lab, seed) as befalls,
                ExitStack() as undone,
                watched(made, server) as url,
            ):
                print(welcome(made, url), flush=True)
                Prompt(made, befalls, undone)
    finally:
        signal.signal(signal.SIGINT, before)
        shutil.rmtree(folder)
