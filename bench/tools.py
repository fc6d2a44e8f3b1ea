# SPDX-License-Identifier: MIT
"""What the bench needs on the machine: found, or built into the build directory."""

import os
import re
import shlex
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
LOAD_SOURCES = ("load.c", "ask.c", "churn.c", "turns.c", "paced.c", "serve.c", "pattern.c")
LOAD = "bench-load"
COPYLOOP = "bench-copyloop"
RAMP_SOURCES = ("main.c", "clients.c", "wire.c", "book.c", "dice.c", "clock.c", "limited.c")
RAMP = "bench-ramp"
SING_BOX = "github.com/sagernet/sing-box/cmd/sing-box"
SING_BOX_VERSION = "v1.14.1"
XRAY = "github.com/xtls/xray-core/main"
XRAY_VERSION = "v1.260327.0"
GO_BUILD_SECONDS = 900
MUXES = HERE / "muxes"
MORE_PATH = ("/usr/local/go/bin", "/usr/sbin", "/sbin")  # not in everybody's PATH
WITH_GO = ("sing-box", "muxes", "xray")  # told of when they are built
VERSION_ARGS = {
    "socat": ("-V",),
    "haproxy": ("-v",),
    "ssh": ("-V",),
    "openssl": ("version",),
    "v2ray": ("-version",),
    "xray": ("version",),
    "kcptun-client": ("--version",),
    "unbound": ("-V",),
    "rp": ("--version",),
    "lp": ("--version",),
    "rp-before": ("--version",),
    "lp-before": ("--version",),
}


@dataclass(frozen=True)
class Tools:
    paths: dict[str, str]
    missing: dict[str, str]  # name -> why


def which(name: str) -> str | None:
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), *MORE_PATH])
    return shutil.which(name, path=path)


def build_load(build: Path) -> Path:
    return compile_once(build / LOAD, [HERE / name for name in LOAD_SOURCES])


def build_copyloop(build: Path) -> Path:
    return compile_once(build / COPYLOOP, [HERE / "copyloop.c"])


def build_ramp(build: Path) -> Path:
    sources = [HERE / "ramp" / name for name in RAMP_SOURCES]
    return compile_once(build / RAMP, sources, ("-lm", "-lssl", "-lcrypto"))


def compile_once(target: Path, sources: list[Path], libraries: tuple[str, ...] = ()) -> Path:
    headers = [it for folder in {path.parent for path in sources} for it in folder.glob("*.h")]
    newest = max(path.stat().st_mtime for path in [*sources, *headers])
    if not target.exists() or target.stat().st_mtime < newest:
        target.parent.mkdir(parents=True, exist_ok=True)
        flags = ["-std=c11", "-O2", "-Wall", "-Wextra", "-pthread"]
        compiler = os.environ.get("CC", "cc").split()
        command = [*compiler, *flags, "-o", str(target), *map(str, sources), *libraries]
        subprocess.run(command, check=True)
    return target


def sing_box_path(build: Path) -> Path:
    return build / "bench-tools" / f"sing-box-{SING_BOX_VERSION}"


def muxes_path(build: Path) -> Path:
    return build / "bench-tools" / "muxes"


def xray_path(build: Path) -> Path:
    return build / "bench-tools" / f"xray-{XRAY_VERSION}"


def build_sing_box(build: Path) -> str | None:
    """Builds it once with the Go tool chain; why not, if it cannot be had."""
    return install(f"{SING_BOX}@{SING_BOX_VERSION}", sing_box_path(build))


def build_xray(build: Path) -> str | None:
    return install(f"{XRAY}@{XRAY_VERSION}", xray_path(build))


def install(package: str, target: Path) -> str | None:
    if target.exists():
        return None
    print(f"building {target.name}, once, a few minutes", flush=True)
    why = run_go(["install", package], target.parent)
    if not why:
        (target.parent / package.partition("@")[0].rpartition("/")[2]).rename(target)
    return why


def build_muxes(build: Path) -> str | None:
    """The same for the two bare libraries, of the versions that go.mod names."""
    target = muxes_path(build)
    newest = max(path.stat().st_mtime for path in MUXES.iterdir())
    if target.exists() and target.stat().st_mtime >= newest:
        return None
    return run_go(["build", "-C", str(MUXES), "-o", str(target.resolve()), "."], target.parent)


def run_go(words: list[str], tools: Path) -> str | None:
    """In caches of its own, that are thrown away; why it failed, if it did."""
    go = which("go")
    if go is None:
        return "no Go tool chain to build it with"
    tools.mkdir(parents=True, exist_ok=True)
    log = tools / f"{words[0]}.log"
    with tempfile.TemporaryDirectory(dir=tools) as scratch:
        caches = {name: str(Path(scratch).resolve() / name) for name in ("GOMODCACHE", "GOCACHE")}
        env = {**os.environ, **caches, "GOBIN": str(tools.resolve()), "GOFLAGS": "-modcacherw"}
        try:
            with log.open("wb") as out:
                subprocess.run(
                    [go, *words],
                    env=env,
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=out,
                    timeout=GO_BUILD_SECONDS,
                    check=True,
                )
        except (subprocess.SubprocessError, OSError):
            return f"`go {shlex.join(words)}` failed, see {log}"
    return None


def find(names: set[str], build: Path, before: Path | None = None) -> Tools:
    """Looks only; build_sing_box() and `make` come first. `before` has the rp and lp of another
    build."""
    own = {
        "rp": build / "rp",
        "lp": build / "lp",
        "sing-box": sing_box_path(build),
        "muxes": muxes_path(build),
        "xray": xray_path(build),
        "load": build / LOAD,
        "copyloop": build / COPYLOOP,
        "ramp": build / RAMP,
    }
    if before:
        own |= {"rp-before": before / "rp", "lp-before": before / "lp"}
    paths, missing = {}, {}
    for name in sorted(names):
        path = str(own[name].resolve()) if name in own else which(name)
        if path and Path(path).is_file():
            paths[name] = path
        elif name.endswith("-before") and not before:
            missing[name] = "it needs --before DIR"
        elif name in own and name not in WITH_GO:
            missing[name] = f"{own[name]} is not built"
        else:
            missing[name] = f"{name} is not installed"
    return Tools(paths, missing)


def version(name: str, path: str) -> str:
    """The first line in which a program tells its version; of the libraries, what is asked for."""
    if name == "muxes":
        required = re.findall(r"^\t(\S+ v\S+)$", (MUXES / "go.mod").read_text(), re.MULTILINE)
        return ", ".join(required)
    if name == "sing-box":  # as Go installs it, it says that its version is unknown
        return f"sing-box {SING_BOX_VERSION}"
    if name not in VERSION_ARGS:
        return ""
    done = subprocess.run(
        [path, *VERSION_ARGS[name]],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    lines = [line.strip() for line in done.stdout.splitlines() if "version" in line.lower()]
    first = lines or done.stdout.strip().splitlines() or [""]
    return first[0]
