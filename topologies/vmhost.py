# SPDX-License-Identifier: MIT
"""A node that is a real machine: qemu, with its own kernel, plugged into the topology.

    namespace of the node, its case             the guest
    ┌──────────────────────────────────┐      ┌─────────────────────────┐
    │ link ═ client-eth0 ─ bridge ─ tap ─────── client-eth0, 10.0.1.1,  │
    └──────────────────────────────────┘      │ lp, tm3.ko, programs    │
                                              └─────────────────────────┘

`inside()` and the lab's programs run in the guest, whose tree is at the same path as here; `cmd()`
and `popen()` are Mininet's and stay in the case. What programs write lies in `shared`, the one
folder that the guest may write to.
"""

import contextlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from mininet.link import Intf

from base.shell import CommandError, enter, run
from base.sources import ROOT
from topologies.addresses import LP_PORT, rp_address
from topologies.devices import turn_off_offloads
from topologies.door import Door
from topologies.nodes import ALSO_TOLD, NO_IPV6, SYSCTLS, LabNode, SettingRefused, sysctls_in
from topologies.redirect import let_end
from vm.image import image
from vm.machine import CommandFailed, Machine, Nic, Share

MEMORY_MIB = 768
# Of the card's place in the case: the guest's own address is the one that its neighbours know.
CASE_MAC = "06:00:00:00:00:{:02x}"


def _quietly(_: str) -> None:
    """The image was to be there; that it is made takes its time, no words."""


class VMHost(LabNode):
    """`shared` is writable in the guest, at the same path; the lab's logs must lie in it."""

    def __init__(self, name: str, *, shared: Path | None = None, **params: Any) -> None:
        self.shared = shared
        self.machine: Machine | None = None
        self._stack = ExitStack()
        super().__init__(name, **params)

    def config(self, **params: Any) -> dict[str, Any]:
        with ExitStack() as stack:
            nics = [self._plug(number, intf) for number, intf in enumerate(self.intfList())]
            folder = (self.shared or self.lab.log_folder).resolve()
            self.machine = stack.enter_context(
                Machine(
                    image(_quietly),
                    nics=nics,
                    shares=[Share(folder, folder, writable=True)],
                    memory_mib=MEMORY_MIB,
                    within=enter(self.namespace, []),
                    environment=self.lab.environment(),
                    console=self.lab.log_folder / f"{self.name}.console.log",
                )
            )
            stack.callback(self._forget)
            self.lab.doors[self.name] = stack.enter_context(
                Door(self.machine, self.lab.folder / f"{self.name}.door")
            )
            stack.callback(self.lab.doors.pop, self.name, None)
            for number, intf in enumerate(self.intfList()):
                self._take_card(number, intf)
            self._set_sysctls()
            self._stack = stack.pop_all()
        return super().config(**params)

    def _forget(self) -> None:
        self.machine = None

    def _plug(self, number: int, intf: Intf) -> Nic:
        """The link's end, a bridge and a TAP: what the guest sends is what the link gets."""
        tap, bridge = f"tap{number}", f"bridge{number}"
        mac = intf.mac
        for words in (
            ("address", "flush", "dev", intf.name),
            ("link", "set", "dev", intf.name, "address", CASE_MAC.format(number)),
            ("link", "add", bridge, "type", "bridge", "stp_state", "0", "mcast_snooping", "0"),
            ("tuntap", "add", "dev", tap, "mode", "tap"),
            ("link", "set", "dev", tap, "mtu", str(intf.link.mile.mtu)),
            ("link", "set", "dev", intf.name, "master", bridge),
            ("link", "set", "dev", tap, "master", bridge),
            ("link", "set", "dev", tap, "up"),
            ("link", "set", "dev", bridge, "up"),
        ):
            run(enter(self.namespace, ["ip", *words]))
        turn_off_offloads(self.namespace, tap)
        return Nic(tap, mac, intf.link.mile.mtu)

    def _take_card(self, number: int, intf: Intf) -> None:
        card, device = f"eth{number}", intf.name
        self.inside("ip", "link", "set", "dev", card, "name", device)
        self.inside("ip", "link", "set", "dev", device, "mtu", str(intf.link.mile.mtu))
        self.inside("ethtool", "-K", device, "tso", "off", "gso", "off", "gro", "off")
        self.inside("ip", "link", "set", "dev", device, "gso_max_segs", "1")
        self.inside("ip", "address", "add", f"{intf.ip}/{intf.prefixLen}", "dev", device)
        self.inside("ip", "link", "set", "dev", device, "up")

    def _set_sysctls(self) -> None:
        wanted = {**SYSCTLS, **self.settings.sysctls, **dict.fromkeys(NO_IPV6, "1")}
        self.inside("sysctl", "-q", "-w", *(f"{key}={value}" for key, value in wanted.items()))
        found = self._sysctls(list(wanted))
        for key, value in wanted.items():
            if found[key] != " ".join(str(value).split()):
                raise SettingRefused(f"{self.name}: {key} is {found[key]!r}, not {value!r}")
        self.set_keys = tuple(wanted)

    def _sysctls(self, keys: Sequence[str]) -> dict[str, str | None]:
        return sysctls_in(self.inside("sysctl", "--ignore", *keys), keys)

    def sysctls(self) -> dict[str, str | None]:
        return self._sysctls([*self.set_keys, *ALSO_TOLD])

    def inside(self, *argv: str | Path, stdin: str = "", seconds: float = 60.0) -> str:
        """In the guest; before it runs, where links are made, in its case."""
        if self.machine is None:
            return super().inside(*argv, stdin=stdin, seconds=seconds)
        try:
            return self.machine.run(argv, stdin=stdin, seconds=seconds, cwd=str(ROOT)).out
        except CommandFailed as why:
            raise CommandError(f"{self.name} (a virtual machine)", str(why)) from None

    def describe(self) -> dict[str, Any]:
        """For a record: what sort of machine this is."""
        assert self.machine is not None, "the machine does not run"
        return {
            "kernel": self.machine.image.release,
            "image": self.machine.image.folder.name,
            "accel": self.machine.accel.name,
            "cpus": self.machine.cpus,
            "memory_mib": self.machine.memory_mib,
            "boot_s": round(self.machine.boot_s, 1),
        }

    def kind(self) -> dict[str, Any]:
        return {"machine": self.describe()}

    def terminate(self) -> None:
        self._stack.close()
        super().terminate()

    @contextmanager
    def module(self, ports: Sequence[int] | None = None) -> Iterator[str]:
        """tm3.ko redirects the guest's connections to lp while the block runs; what it says.

        `ports`: of servers; None is every one.
        """
        control = ROOT / "kmod" / "tm3ctl"
        device = self.intfList()[0].name
        words = ["all"] if ports is None else [str(port) for port in ports]
        port = ["--local-port", str(LP_PORT)]
        self.inside(control, "--with", "module", *port, rp_address(), device, *words)
        try:
            yield self.inside(control, "status")
            let_end(self)
        finally:
            self.inside(control, "off")
            with contextlib.suppress(CommandError):  # it may be used by other namespaces
                self.inside("rmmod", "tm3")
