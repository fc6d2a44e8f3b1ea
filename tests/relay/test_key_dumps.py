# SPDX-License-Identifier: MIT
"""A process that has keys leaves no core dump: they would be in it."""

import re
from pathlib import Path

from tests.relay.keyed import key_file, made, needs_tls
from tests.relay.netns import Namespace
from tests.relay.programs import Program, binary, program
from tests.relay.proxies import RP_READY

NOBODY = 65534
# The tree, and a test's own folder, may be closed to others.
AS_NOBODY = (
    *("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"),
    *("--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"),
)


def dumps(proxy: Program) -> tuple[str, ...]:
    """Its limits of a core's size, and whose it is: root's, where nobody may look inside."""
    of = Path(f"/proc/{proxy.pid}")
    limits = re.findall(r"^Max core file size +(\w+) +(\w+) ", (of / "limits").read_text(), re.M)
    return (*limits[0], "root" if (of / "mem").stat().st_uid == 0 else "its user")


def test_who_has_keys_leaves_no_core(box: Namespace, tmp_path: Path) -> None:
    """Without --user, too, and a limit from outside does not bring core dumps back."""
    needs_tls()
    keys = key_file(tmp_path / "keys", made("laptop"))
    ends = {"rp": (RP_READY, ["4"]), "lp": ("SOCKS5 on", ["127.0.0.1", "4"])}
    found = {}
    for name, (ready, end) in ends.items():
        for own in ((), keys):
            argv = ["prlimit", "--core=unlimited", *AS_NOBODY, binary(name, asan=False), *own, *end]
            log = tmp_path / f"{name}-{len(own)}.log"
            with program(box, argv, log, name=name, ready=ready) as proxy:
                found[name, bool(own)] = dumps(proxy)
    assert found == {
        (name, has_keys): ("0", "0", "root") if has_keys else ("unlimited", "unlimited", "its user")
        for name in ends
        for has_keys in (False, True)
    }
