# SPDX-License-Identifier: MIT
"""A certificate that a server of a run shows: made when the server is, signed by itself."""

from collections.abc import Sequence
from pathlib import Path

from base.shell import run


def make(certificate: Path, key: Path, names: Sequence[str]) -> None:
    """Of these DNS names; both files in PEM format. Who is to believe it is told of it."""
    alternatives = ",".join(f"DNS:{name}" for name in names)
    run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"),
            *("-noenc", "-days", "30", "-subj", "/CN=tm3.test", "-keyout", key),
            *("-out", certificate, "-addext", f"subjectAltName={alternatives}"),
        ]
    )
