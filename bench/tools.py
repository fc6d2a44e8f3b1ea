# SPDX-License-Identifier: MIT
"""What the bench needs on the machine: found, or built into the build directory."""

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
LOAD_SOURCES = ("load.c", "paced.c", "serve.c", "pattern.c")
SING_BOX = "github.com/sagernet/sing-box/cmd/sing-box"
SING_BOX_VERSION = "v1.14.1"
SING_BOX_BUILD_SECONDS = 900
MORE_PATH = ("/usr/local/go/bin", "/usr/sbin", "/sbin")  # not in everybody's PATH
VERSION_ARGS = {
    "socat": ("-V",),
    "haproxy": ("-v",),
    "ssh": ("-V",),
    "sing-box": ("version",),
    "v2ray": ("-version",),
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
    target = build / "bench-load"
    sources = [HERE / name for name in LOAD_SOURCES]
    newest = max(path.stat().st_mtime for path in [*sources, HERE / "load.h"])
    if not target.exists() or target.stat().st_mtime < newest:
        build.mkdir(parents=True, exist_ok=True)
        flags = ["-std=c11", "-O2", "-Wall", "-Wextra", "-pthread"]
        compiler = os.environ.get("CC", "cc").split()
        subprocess.run([*compiler, *flags, "-o", str(target), *map(str, sources)], check=True)
    return target


def sing_box_path(build: Path) -> Path:
    return build / "bench-tools" / f"sing-box-{SING_BOX_VERSION}"


def build_sing_box(build: Path) -> str | None:
    """Builds it once with the Go tool chain; why not, if it cannot be had."""
    target = sing_box_path(build)
    if target.exists():
        return None
    go = which("go")
    if go is None:
        return "no Go tool chain to build it with"
    tools = target.parent
    tools.mkdir(parents=True, exist_ok=True)
    caches = {"GOMODCACHE": str(tools / "mod"), "GOCACHE": str(tools / "cache")}
    env = {**os.environ, **caches, "GOBIN": str(tools), "GOFLAGS": "-modcacherw"}
    log = tools / "build.log"
    print(f"building sing-box {SING_BOX_VERSION}, once, a few minutes", flush=True)
    try:
        with log.open("wb") as out:
            subprocess.run(
                [go, "install", f"{SING_BOX}@{SING_BOX_VERSION}"],
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                timeout=SING_BOX_BUILD_SECONDS,
                check=True,
            )
        (tools / "sing-box").rename(target)
    except (subprocess.SubprocessError, OSError):
        return f"`go install {SING_BOX}` failed, see {log}"
    finally:
        for cache in caches.values():
            shutil.rmtree(cache, ignore_errors=True)
    return None


def find(names: set[str], build: Path, before: Path | None = None) -> Tools:
    """Looks only; build_sing_box() and `make` come first. `before` has the rp and lp of another
    build."""
    own = {"rp": build / "rp", "lp": build / "lp", "sing-box": sing_box_path(build)}
    if before:
        own |= {"rp-before": before / "rp", "lp-before": before / "lp"}
    paths, missing = {}, {}
    for name in sorted(names):
        path = str(own[name].resolve()) if name in own else which(name)
        if path and Path(path).exists():
            paths[name] = path
        elif name.endswith("-before") and not before:
            missing[name] = "it needs --before DIR"
        elif name in own and name != "sing-box":
            missing[name] = f"{own[name]} is not built"
        else:
            missing[name] = f"{name} is not installed"
    return Tools(paths, missing)


def version(name: str, path: str) -> str:
    """The first line in which a program tells its version."""
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
