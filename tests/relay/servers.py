# SPDX-License-Identifier: MIT
"""The servers and clients that people use, set up to run in a namespace without their defaults."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.relay.netns import Namespace
from tests.relay.programs import Program, program

NGINX_CONF = """
daemon off;
master_process off;
user root;
worker_rlimit_nofile 4096;
pid {tmp}/nginx.pid;
error_log {tmp}/nginx-error.log warn;
events {{ worker_connections 2048; }}
http {{
    access_log off;
    default_type application/octet-stream;
    client_max_body_size 0;
    client_body_temp_path {tmp}/body;
    proxy_temp_path {tmp}/proxy;
    fastcgi_temp_path {tmp}/fastcgi;
    uwsgi_temp_path {tmp}/uwsgi;
    scgi_temp_path {tmp}/scgi;
    sendfile on;
    server {{
        listen {address}:{port} backlog=1024;
        root {root};
        dav_methods PUT;
        create_full_put_path on;
        location /slow/ {{ alias {root}/; limit_rate {slow_bytes_per_s}; }}
    }}
}}
"""


@contextmanager
def nginx(
    ns: Namespace,
    tmp: Path,
    root: Path,
    *,
    port: int = 8080,
    address: str = "127.0.0.1",
    slow_bytes_per_s: int = 1_000_000,
) -> Iterator[Program]:
    """nginx over the files of `root`: GET and PUT; under /slow/ at a limited rate."""
    tmp = tmp / f"nginx-{port}"
    tmp.mkdir()
    conf = tmp / "nginx.conf"
    conf.write_text(
        NGINX_CONF.format(
            tmp=tmp, root=root, port=port, address=address, slow_bytes_per_s=slow_bytes_per_s
        )
    )
    argv = ["/usr/sbin/nginx", "-p", tmp, "-e", tmp / "nginx-early.log", "-c", conf]
    with program(ns, argv, tmp / "log", name="nginx", port=port, status=None) as proc:
        yield proc


SSHD_CONF = """
Port {port}
ListenAddress 127.0.0.1
HostKey {tmp}/host
AuthorizedKeysFile {tmp}/user.pub
PidFile {tmp}/sshd.pid
StrictModes no
UsePAM no
PasswordAuthentication no
PermitRootLogin yes
UseDNS no
PrintMotd no
Subsystem sftp internal-sftp
"""


@contextmanager
def sshd(ns: Namespace, tmp: Path, *, port: int = 2222) -> Iterator[list[str]]:
    """An sshd with keys of its own; the options an ssh client needs to log in."""
    tmp = tmp / f"sshd-{port}"
    tmp.mkdir()
    for key in ("host", "user"):
        ns.run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp / key)
    conf = tmp / "sshd_config"
    conf.write_text(SSHD_CONF.format(tmp=tmp, port=port))
    # Where an sshd without privileges lives; Debian makes it only when its service starts.
    Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    argv = [shutil.which("sshd", path="/usr/sbin:/usr/bin") or "sshd", "-D", "-e", "-f", conf]
    with program(ns, argv, tmp / "log", name="sshd", port=port, status=None):
        options = {
            "IdentityFile": tmp / "user",
            "IdentitiesOnly": "yes",
            "BatchMode": "yes",
            "StrictHostKeyChecking": "no",
            "UserKnownHostsFile": "/dev/null",
            "LogLevel": "ERROR",
        }
        yield [
            "-F",
            "/dev/null",
            *(part for k, v in options.items() for part in ("-o", f"{k}={v}")),
        ]


@contextmanager
def iperf3(ns: Namespace, tmp: Path, *, port: int = 5201) -> Iterator[Program]:
    argv = ["iperf3", "--server", "--bind", "127.0.0.1", "--port", str(port)]
    with program(ns, argv, tmp / "iperf3.log", name="iperf3", port=port, status=None) as proc:
        yield proc
