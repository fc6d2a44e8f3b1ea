# SPDX-License-Identifier: MIT
"""A path: the address that its connections are bound to, and the resolvers of its access network.

    ADDRESS|INTERFACE[,RESOLVER[#PORT]]...

Which way packets of an address go is the routing table's matter (`ip rule add from ADDRESS ...`).
"""

import fcntl
import ipaddress
import socket
import struct
from dataclasses import dataclass

from experiments.workloads.mhttp.failure import BadInput

FORM = "ADDRESS|INTERFACE[,RESOLVER[#PORT]]..."
_SIOCGIFADDR = 0x8915


@dataclass(frozen=True)
class Resolver:
    address: str
    port: int = 53

    @classmethod
    def of(cls, text: str) -> "Resolver":
        address, _, port = text.partition("#")
        try:
            found = ipaddress.ip_address(address)
            number = int(port or "53")
        except ValueError:
            raise BadInput(f"resolver {text!r} is not ADDRESS[#PORT]") from None
        if not 0 < number < 65536:
            raise BadInput(f"resolver {text!r}: there is no port {number}")
        return cls(str(found), number)


@dataclass(frozen=True)
class Path:
    name: str
    address: str | None  # None: whatever the kernel chooses
    resolvers: tuple[Resolver, ...] = ()

    @property
    def family(self) -> socket.AddressFamily:
        if self.address is None:
            return socket.AF_UNSPEC
        return socket.AF_INET6 if ":" in self.address else socket.AF_INET

    def reaches(self, address: str) -> bool:
        """Whether both are IPv4, or both IPv6."""
        return self.address is None or (":" in self.address) == (":" in address)

    @classmethod
    def of(cls, text: str) -> "Path":
        """Raises BadInput where this host has no such path."""
        name, *resolvers = text.split(",")
        address = _own_address(name)
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        with socket.socket(family, socket.SOCK_STREAM) as sock:
            try:
                sock.bind((address, 0))
            except OSError as why:
                raise BadInput(f"path {name!r}: {why.strerror}") from None
        return cls(name, address, tuple(Resolver.of(it) for it in resolvers))


ANY = Path("default", None)


def _own_address(name: str) -> str:
    try:
        return str(ipaddress.ip_address(name))
    except ValueError:
        pass
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        try:
            told = fcntl.ioctl(sock, _SIOCGIFADDR, struct.pack("16s16x", name.encode()[:15]))
        except OSError:
            told = None
    if told is None:
        raise BadInput(f"path {name!r}: neither an address nor an interface that has one ({FORM})")
    return socket.inet_ntoa(told[20:24])
