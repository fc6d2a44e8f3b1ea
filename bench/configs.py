# SPDX-License-Identifier: MIT
"""Configuration of the other relays: nothing of the user's own is read."""

import json
import os
import pwd
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.certificate import Certificate

ID = "6a1f3c52-8e0d-4b7a-9c35-2d4e8f601b7c"  # both halves of a tunnel must agree on one
SERVER_NAME = "tm3.test"  # in what shows a certificate


@dataclass(frozen=True)
class HaproxyTuning:
    """Lines of two of its sections."""

    of_all: str = ""
    of_relays: str = ""


def haproxy(entry: int, server: int, connections: int, tuning: HaproxyTuning) -> str:
    return f"""global
  nbthread 1
  maxconn {connections}
  {tuning.of_all}
defaults
  mode tcp
  {tuning.of_relays}
  timeout connect 10s
  timeout client 300s
  timeout server 300s
listen relay
  bind 127.0.0.1:{entry} backlog 4096
  server target 127.0.0.1:{server}
"""


@dataclass(frozen=True)
class SshKeys:
    host: Path
    user: Path
    authorized: Path
    known: Path


def ssh_keys(directory: Path, keygen: str, port: int) -> SshKeys:
    keys = SshKeys(*(directory / name for name in ("host", "user", "authorized", "known")))
    for key in (keys.host, keys.user):
        command = [keygen, "-q", "-t", "ed25519", "-N", "", "-C", "bench", "-f", str(key)]
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
    keys.authorized.write_text(keys.user.with_suffix(".pub").read_text())
    keys.known.write_text(f"[127.0.0.1]:{port} {keys.host.with_suffix('.pub').read_text()}")
    return keys


def sshd(keys: SshKeys, port: int) -> str:
    return f"""ListenAddress 127.0.0.1
Port {port}
HostKey {keys.host}
AuthorizedKeysFile {keys.authorized}
PidFile none
UsePAM no
StrictModes no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
AllowTcpForwarding yes
LogLevel ERROR
"""


def ssh_options(keys: SshKeys, entry: int, port: int) -> list[str]:
    settings = {
        "UserKnownHostsFile": str(keys.known),
        "GlobalKnownHostsFile": "none",
        "StrictHostKeyChecking": "yes",
        "IdentitiesOnly": "yes",
        "IdentityAgent": "none",
        "BatchMode": "yes",
        "ExitOnForwardFailure": "yes",
        "LogLevel": "ERROR",
        "Ciphers": "aes128-gcm@openssh.com",
    }
    options = [part for name, value in settings.items() for part in ("-o", f"{name}={value}")]
    user = pwd.getpwuid(os.getuid()).pw_name
    forward = ["-N", "-D", f"127.0.0.1:{entry}", "-i", str(keys.user), "-p", str(port)]
    return ["-F", "none", *options, *forward, f"{user}@127.0.0.1"]


def sing_box_server(middle: int, shown: Certificate | None = None) -> str:
    """`shown`: by TLS 1.3."""
    inbound: dict[str, Any] = {
        "type": "vless",
        "listen": "127.0.0.1",
        "listen_port": middle,
        "users": [{"uuid": ID}],
        "multiplex": {"enabled": True},
    }
    if shown:
        files = {"certificate_path": str(shown.chain), "key_path": str(shown.key)}
        inbound["tls"] = {"enabled": True, "min_version": "1.3", **files}
    return json.dumps(
        {"log": {"disabled": True}, "inbounds": [inbound], "outbounds": [{"type": "direct"}]}
    )


def sing_box_client(
    entry: int,
    middle: int,
    server: int,
    protocol: str,
    connections: int,
    shown: Certificate | None = None,
) -> str:
    inbound = {
        "type": "direct",
        "listen": "127.0.0.1",
        "listen_port": entry,
        "network": "tcp",
        "override_address": "127.0.0.1",
        "override_port": server,
    }
    outbound: dict[str, Any] = {
        "type": "vless",
        "server": "127.0.0.1",
        "server_port": middle,
        "uuid": ID,
        "multiplex": {
            "enabled": True,
            "protocol": protocol,
            "max_connections": connections,
            "min_streams": 1,
        },
    }
    if shown:
        trusted = {"server_name": SERVER_NAME, "certificate_path": str(shown.chain)}
        outbound["tls"] = {"enabled": True, "min_version": "1.3", **trusted}
    return json.dumps({"log": {"disabled": True}, "inbounds": [inbound], "outbounds": [outbound]})


def v2ray_server(middle: int) -> str:
    inbound = {
        "listen": "127.0.0.1",
        "port": middle,
        "protocol": "vmess",
        "settings": {"clients": [{"id": ID}]},
    }
    return json.dumps(
        {
            "log": {"loglevel": "none"},
            "inbounds": [inbound],
            "outbounds": [{"protocol": "freedom"}],
        }
    )


def v2ray_client(entry: int, middle: int, server: int) -> str:
    inbound = {
        "listen": "127.0.0.1",
        "port": entry,
        "protocol": "dokodemo-door",
        "settings": {"address": "127.0.0.1", "port": server, "network": "tcp"},
    }
    user = {"id": ID, "security": "none"}
    outbound = {
        "protocol": "vmess",
        "settings": {"vnext": [{"address": "127.0.0.1", "port": middle, "users": [user]}]},
        "mux": {"enabled": True, "concurrency": 1024},
    }
    return json.dumps({"log": {"loglevel": "none"}, "inbounds": [inbound], "outbounds": [outbound]})


def xray_server(middle: int) -> str:
    inbound = {
        "listen": "127.0.0.1",
        "port": middle,
        "protocol": "vless",
        "settings": {"clients": [{"id": ID}], "decryption": "none"},
    }
    return json.dumps(
        {
            "log": {"loglevel": "none"},
            "inbounds": [inbound],
            "outbounds": [{"protocol": "freedom"}],
        }
    )


def xray_client(entry: int, middle: int, server: int) -> str:
    inbound = {
        "listen": "127.0.0.1",
        "port": entry,
        "protocol": "dokodemo-door",
        "settings": {"address": "127.0.0.1", "port": server, "network": "tcp"},
    }
    user = {"id": ID, "encryption": "none"}
    outbound = {
        "protocol": "vless",
        "settings": {"vnext": [{"address": "127.0.0.1", "port": middle, "users": [user]}]},
        "mux": {"enabled": True, "concurrency": 128},  # the most that it takes
    }
    return json.dumps({"log": {"loglevel": "none"}, "inbounds": [inbound], "outbounds": [outbound]})
