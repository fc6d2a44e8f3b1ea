# SPDX-License-Identifier: MIT
"""Dask's TLS: who shows no certificate of this authority reaches neither scheduler nor workers."""

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from topologies.parameter import ParameterError

FLAGS = {"tls_ca_file": "--tls-ca-file", "tls_cert": "--tls-cert", "tls_key": "--tls-key"}
_HELP = ("of the authority that signed all certificates", "the certificate to show", "its key")


@dataclass(frozen=True)
class Tls:
    """Three files in PEM format."""

    tls_ca_file: Path
    tls_cert: Path
    tls_key: Path

    def words(self) -> list[str]:
        """For `dask scheduler` and `dask worker`."""
        told = [word for name, flag in FLAGS.items() for word in (flag, str(getattr(self, name)))]
        return ["--protocol", "tls", *told]


def add(parser: Any) -> None:
    group = parser.add_argument_group("TLS", "all three, at scheduler, workers and run --spread")
    for flag, text in zip(FLAGS.values(), _HELP, strict=True):
        group.add_argument(flag, type=Path, metavar="FILE", help=text)


def given(options: argparse.Namespace) -> Tls | None:
    """Of a command line; None without. Raises ParameterError."""
    named = {name: getattr(options, name) for name in FLAGS}
    if not any(named.values()):
        return None
    for name, path in named.items():
        if path is None:
            raise ParameterError(name, f"TLS needs {', '.join(FLAGS.values())}")
        if not path.is_file():
            raise ParameterError(name, f"{path} is no file")
    return Tls(**{name: path.resolve() for name, path in named.items()})
