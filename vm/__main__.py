# SPDX-License-Identifier: MIT
"""python -m vm: make the guest's image, run a command in a guest, open a shell in one."""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from base.pressure import OWN_CLOCK
from vm import shelf, testing
from vm.accel import TCG_COUNTED
from vm.box import box
from vm.image import Image, image
from vm.kernels import kernels
from vm.machine import Machine, Share
from vm.need import GuestError
from vm.recipe import cache
from vm.terminal import attached
from vm.wireshark import wireshark

RESULTS = Path("/results")


def say(text: str) -> None:
    print(f"vm: {text}", file=sys.stderr, flush=True)


def machine(options: argparse.Namespace) -> Machine:
    shares = []
    if options.results:
        options.results.mkdir(parents=True, exist_ok=True)
        shares.append(Share(options.results.resolve(), RESULTS, writable=True))
    return Machine(
        image(say),
        shares=shares,
        memory_mib=options.memory,
        cpus=options.cpus,
        nice=options.nice,
        kernel_words=options.kernel.split(),
        console=options.console,
        ready_s=options.ready,
        by=TCG_COUNTED if options.own_clock else None,
    )


def build(_: argparse.Namespace) -> int:
    found: Image = image(say)
    say(f"{found.folder} (Linux {found.release})")
    return 0


def run(options: argparse.Namespace) -> int:
    with machine(options) as guest:
        say(f"Linux {guest.image.release} is up after {guest.boot_s:.0f} s")
        if options.own_clock:
            say("moving the tree and build/venv into its memory")
            guest.move_in(*testing.PROGRAMS, "venv")
        return attached(guest, options.command, {OWN_CLOCK: "1"} if options.own_clock else None)


def shell(options: argparse.Namespace) -> int:
    options.command = ["/bin/bash", "-i"]
    return run(options)


def test(options: argparse.Namespace) -> int:
    words = options.words[options.words[:1] == ["--"] :]
    names = options.only or [name for name, it in testing.GROUPS.items() if not it.kernel]
    return testing.test(image(say), names, words, options.results, say)


def make_box(_: argparse.Namespace) -> int:
    made = box(say)
    say("to use it:")
    say(f"  vagrant box add --force --name tm3/lab {made}")
    say("  TM3_BOX=tm3/lab vagrant up")
    return 0


def fetch(_: argparse.Namespace) -> int:
    say(f"{kernels(say)} is what tests/kmod build for")
    return 0


def fetch_wireshark(_: argparse.Namespace) -> int:
    say(f"{wireshark(say)} is what tests/dissector run as well")
    return 0


def clean(_: argparse.Namespace) -> int:
    shelf.clean(say)
    return 0


def parser() -> argparse.ArgumentParser:
    root = argparse.ArgumentParser(prog="python -m vm", description=__doc__)
    verbs = root.add_subparsers(dest="verb", required=True)

    def verb(name: str, does: Callable[[argparse.Namespace], int], text: str) -> None:
        it = verbs.add_parser(name, help=text)
        it.set_defaults(does=does)
        if name in ("build", "box", "kernels", "wireshark", "clean"):
            return
        if name == "test":
            it.add_argument("--only", action="append", choices=testing.NAMES)
            it.add_argument("--results", type=Path, metavar="DIR", default=cache() / "tests")
            it.add_argument("words", nargs=argparse.REMAINDER, metavar="-- WORDS of pytest")
            return
        it.add_argument("--results", type=Path, metavar="DIR", help=f"writable there at {RESULTS}")
        it.add_argument("--memory", type=int, default=2048, metavar="MIB")
        it.add_argument("--cpus", type=int, default=2, metavar="N")
        it.add_argument("--nice", type=int, default=0, metavar="N", help="of the guest (root)")
        it.add_argument("--kernel", default="", metavar="WORDS", help="further kernel parameters")
        it.add_argument("--console", type=Path, metavar="FILE", help="keep its console")
        it.add_argument("--ready", type=float, default=120.0, metavar="SECONDS")
        it.set_defaults(own_clock=False)  # while it waits for a key it would go on
        if name == "run":
            it.add_argument(
                "--own-clock",
                action="store_true",
                help="one emulated processor, whose clock counts instructions: others on this "
                "machine change no figure",
            )
            it.add_argument("command", nargs=argparse.REMAINDER, metavar="-- COMMAND")

    verb("build", build, "make the image if it is not there (root)")
    verb("run", run, "boot, run a command in /tm3, end; its exit status")
    verb("shell", shell, "boot, a shell in /tm3, end")
    verb("test", test, "the tests that need a guest")
    verb("box", make_box, "make the box for Vagrant if it is not there (root)")
    verb("kernels", fetch, "headers of newer kernels, and checkpatch (root)")
    verb("wireshark", fetch_wireshark, "tshark of the next Debian (root)")
    verb("clean", clean, "remove the images and boxes that nobody uses")
    return root


def main() -> int:
    options = parser().parse_args()
    if options.verb == "run":
        options.command = options.command[options.command[:1] == ["--"] :]
        if not options.command:
            parser().error("run: no command")
    try:
        return options.does(options)
    except GuestError as why:
        say(str(why))
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
