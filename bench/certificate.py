# SPDX-License-Identifier: MIT
"""A certificate that a server shows: made when it starts, signed by itself."""

import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Certificate:
    """Two files in PEM format."""

    chain: Path
    key: Path


def make(folder: Path, openssl: str, name: str) -> Certificate:
    """Of this DNS name. Who asks is told to believe it."""
    made = Certificate(folder / "certificate.pem", folder / "key.pem")
    command = [
        *(openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"),
        *("-noenc", "-days", "30", "-subj", "/CN=tm3.test", "-keyout", str(made.key)),
        *("-out", str(made.chain), "-addext", f"subjectAltName=DNS:{name}"),
    ]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL, capture_output=True)
    return made
