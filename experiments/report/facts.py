# SPDX-License-Identifier: MIT
"""What was in force, as meta.json tells it: machine, kernel, links, congestion control, commit."""

import shlex
import time
from collections.abc import Iterator
from typing import Any

from base.sources import ROOT
from experiments import machine
from experiments.report import words
from experiments.report.data import Results, found

NOT_TOLD = "not recorded"
LEFT_OUT = ("seed", "topology")


def sessions(results: Results) -> list[dict[str, Any]]:
    told = results.meta.get("sessions")
    return [it for it in told if isinstance(it, dict)] if isinstance(told, list) else []


def date(seconds: Any) -> str:
    if not isinstance(seconds, int | float):
        return NOT_TOLD
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(seconds))


def links(results: Results) -> str:
    kinds = sorted({run.link for run in results.runs if run.link})
    return words.listed(kinds) or NOT_TOLD


def short(results: Results) -> list[str]:
    """For the head of the page."""
    began = min((run.started for run in results.runs if run.started), default=None)
    low, high = results.reps
    each = f"{low}" if low == high else f"{low} to {high}"
    each += " run each" if high == 1 else " runs each"
    failed = f"{len(results.failed)} failed" if results.failed else "none failed"
    return [
        date(began),
        f"{words.count(len(results.configurations), 'configuration')}, {each}",
        f"{words.count(len(results.runs), 'run')}, {failed}"
        + (f", {results.void} void" if results.void else ""),
        f"link: {links(results)}",
        f"commit {str(results.meta.get('commit') or NOT_TOLD)[:10]}",
    ]


def of(results: Results) -> list[tuple[str, str]]:
    return [(name, text) for name, text in _all(results) if text]


def _all(results: Results) -> Iterator[tuple[str, str]]:
    meta = results.meta
    yield "commit", str(meta.get("commit") or NOT_TOLD)
    yield "command", command(results)
    yield "machine", _machine(meta)
    yield "kernel", str(found(meta, "kernel") or NOT_TOLD)
    yield "system", str(found(meta, "system") or "")
    yield "client", _client(results)
    yield "links", _links(results)
    yield "programs", _versions(meta)
    yield "congestion control", _controls(results)
    yield "seeds", _seeds(results)
    yield "ran", _when(results)
    yield "calibration", calibrated(results)
    yield "machine kept up", kept_up(results)
    yield "void", _void(results)
    yield "alike in all runs", _alike(results)
    if results.interrupted:
        yield "interrupted", f"{words.count(results.interrupted, 'run')}, not counted"


def _machine(meta: dict[str, Any]) -> str:
    cores, memory = found(meta, "cores"), found(meta, "memory_kib")
    parts = [found(meta, "cpu"), cores and words.count(cores, "core")]
    if isinstance(memory, int):
        parts.append(f"{memory / 2**20:.1f} GiB")
    told = ", ".join(str(part) for part in parts if part) or NOT_TOLD
    if has_own_clock(meta):
        told += "; emulated, by a clock of its own: 10^9 instructions are a second of it"
    return told


def has_own_clock(meta: dict[str, Any]) -> bool:
    """Nothing outside made this machine late."""
    return found(meta, "own_clock") is True


def _client(results: Results) -> str:
    """Of a client that is a virtual machine: its kernel, and whether its clock can be believed."""
    told = results.meta.get("labs")
    for lab in told.values() if isinstance(told, dict) else ():
        machine = found(lab.get("nodes"), "machine")
        if isinstance(machine, dict):
            text = f"a virtual machine ({machine['accel']}), kernel {machine['kernel']}, booted "
            text += f"in {machine['boot_s']:g} s; redirected by "
            module = machine.get("module") or {}
            text += f"{module.get('redirected_by')} (sha256 {str(module.get('sha256'))[:12]})"
            emulated = "; its processor is emulated: its programs and its clock are slow"
            return text + (emulated if machine["accel"] == "tcg" else "")
    return ""


def _links(results: Results) -> str:
    kinds = links(results)
    told = {
        "linkem": "linkem: the user-space emulator, seeded: the n-th packet meets the same fate "
        "in each run with that seed",
        "netem": "netem: the kernel's emulator; seeds do not reach its losses",
    }
    return told.get(kinds, kinds)


def _versions(meta: dict[str, Any]) -> str:
    told = found(meta, "versions")
    if not isinstance(told, dict):
        return ""
    return ", ".join(
        str(text) if name in str(text) else f"{name} {text}"
        for name, text in told.items()
        if text and name != "commit"
    )


def _controls(results: Results) -> str:
    asked = sorted({str(run.params["cc"]) for run in results.runs if run.params.get("cc")})
    return f"{words.listed(asked)} on all connections of the experiment" if asked else ""


def _seeds(results: Results) -> str:
    seeds = sorted({run.seed for run in results.runs})
    if not seeds:
        return ""
    units = [name for name in results.experiment.units if name in results.varying]
    if len({(run.rep, run.seed) for run in results.runs}) > len({run.rep for run in results.runs}):
        each = words.listed(["repetition", *(words.name(it) for it in units)])
        return f"{len(seeds)}, one for each {each}, the same for all that is compared"
    return (
        f"{seeds[0]} to {seeds[-1]}, the same for all configurations"
        if seeds[1:]
        else (f"{seeds[0]}")
    )


def _when(results: Results) -> str:
    times = [(run.started, run.took_s or 0.0) for run in results.runs if run.started]
    if not times:
        return ""
    text = f"{date(min(t for t, _ in times))} to {date(max(t + took for t, took in times))}"
    if results.sessions > 1:
        text += f", in {results.sessions} sessions"
    calls = len(sessions(results))
    return f"{text}, by {calls} calls of the command" if calls > 1 else text


def calibrations(results: Results) -> list[dict[str, Any]]:
    """What was measured of the links before the runs, of all calls of the command."""
    of_calls = [call.get("calibrations") for call in sessions(results)]
    all_of_them = [told for some in of_calls if isinstance(some, list) for told in some]
    return [told for told in all_of_them if isinstance(told, dict) and told.get("links")]


def calibrated(results: Results) -> str:
    """The worst of all, and what missed a bound."""
    told = calibrations(results)
    if not told:
        return "none: nobody checked the links right before these runs"
    links = [(it["kind"], it["found"]) for one in told for it in one["links"]]
    late_ms = max(0.0, *(found["late_p99_ms"] for _, found in links))
    off, mbps, wanted = max(
        (abs(found["mbps"] / kind["mbps"] - 1), found["mbps"], kind["mbps"])
        for kind, found in links
    )
    text = f"{words.count(len(told), 'time')} right before runs: packets at most {late_ms:.2g} ms "
    text += f"late (99th percentile), {mbps:.4g} of {wanted:g} Mbit/s ({100 * off:.1f} % off)"
    misses = [one for one in told if one["missed"]]
    if misses:
        last = "; ".join(misses[-1]["missed"])
        text += f". {len(misses)} of them missed what is asked, the last by this: {last}"
        if any(one.get("runs_follow") for one in misses):
            text += ". Runs followed all the same (--keep-late)"
    return text


def lateness(results: Results) -> dict[str, float] | None:
    """The worst of all runs that count; None where a run has none: nobody knows of that one."""
    told = [(run.machine or {}).get("late_us") for run in results.runs if run.ok]
    if not told or not all(told):
        return None
    return {f"{key}_us": max(machine.worst(it, key)[0] for it in told) for key in ("p99", "max")}


def kept_up(results: Results) -> str:
    """How late linkem was, of all runs the worst."""
    late = lateness(results)
    if late is None and has_own_clock(results.meta):
        return "its clock counts instructions: only its own programs can have made it late"
    if late is None and any(run.machine for run in results.runs):
        return f"{NOT_TOLD}: not all links ({links(results)}) told how late they were"
    if late is None:
        return f"{NOT_TOLD}: nobody knows whether linkem was late in these runs"
    loads = [run.machine["load"] for run in results.runs if run.machine and run.ok]
    waits = {name: waited(results, name) for name in ("linkem", "rp", "lp")}
    text = f"linkem was at most {late['p99_us'] / 1e3:g} ms late in 99 % of a run's packets, "
    text += f"{late['max_us'] / 1e3:g} ms in all"
    told = [f"{name} {100 * share:.1f} %" for name, share in waits.items() if share]
    if told:
        text += f"; waited for a processor, of a run at most: {', '.join(told)}"
    return f"{text}; load at most {max(loads):g}"


def waited(results: Results, name: str) -> float | None:
    """For a processor, that process: the most of all runs that count, as a share of a run."""
    its = [run.machine for run in results.runs if run.ok and run.machine]
    shares = [
        it[f"{name}_waited_s"] / it["took_s"]
        for it in its
        if it.get(f"{name}_waited_s") and it["took_s"]
    ]
    return max(shares, default=None)


def _void(results: Results) -> str:
    """Attempts that count for nothing, and why."""
    if not results.voided:
        return ""
    attempts = words.count(len(results.voided), "attempt")
    left = words.count(results.void, "run") if results.void else "no run"
    return (
        f"{attempts}, in no figure, because the machine did not keep up; {left} without another. "
        f"The last of them: {results.voided[-1].error}"
    )


def _alike(results: Results) -> str:
    """Parameters that no configuration changes, as far as they apply."""
    if not results.runs:
        return ""
    values: dict[str, set[Any]] = {}
    for run in results.runs:
        for name, value in run.params.items():
            if value is not None and name not in LEFT_OUT:
                values.setdefault(name, set()).add(value)
    texts = [
        f"{words.name(name)} {words.value(name, next(iter(seen)))}"
        for name, seen in values.items()
        if len(seen) == 1 and name not in results.varying
    ]
    return ", ".join(texts)


def labs(results: Results) -> list[dict[str, str]]:
    """Each kind of lab once, with what was read back in it."""
    told = results.meta.get("labs")
    if not isinstance(told, dict):
        return []
    return [_lab(name, it) for name, it in told.items() if isinstance(it, dict)]


def _lab(name: str, lab: dict[str, Any]) -> dict[str, str]:
    miles = lab.get("miles") if isinstance(lab.get("miles"), list) else []
    choice = lab.get("link") if isinstance(lab.get("link"), dict) else {}
    pipes = sorted({str(it) for it in _controls_of_pipes(lab)})
    return {
        "name": name,
        "mile": "; ".join(_mile(it) for it in miles if isinstance(it, dict)),
        "link": str(choice.get("realisation", "")),
        "bottleneck": {"network": "the network", "sender": "the sender's own device"}.get(
            str(lab.get("bottleneck")), ""
        ),
        "cc": words.listed(pipes) or "no pipes",
    }


def _controls_of_pipes(lab: dict[str, Any]) -> Iterator[str]:
    for node in (lab.get("nodes") or {}).values():
        told = node.get("cc_of_pipes") if isinstance(node, dict) else None
        yield from told if isinstance(told, list | dict) else ()


def _mile(mile: dict[str, Any]) -> str:
    """10/10 Mbit/s, 50 ms, queue 100/100 ms, loss 1/1 %."""

    def both(name: str, scale: float = 1.0, tail: str = "") -> str:
        values = [mile.get(name.replace("*", way)) for way in ("down", "up")]
        texts = ["trace" if v is None else f"{v * scale:g}" for v in values]
        return f"{'/'.join(texts)}{tail}"

    text = f"{both('*_mbps')} Mbit/s, {mile.get('rtt_ms', 0):g} ms, "
    text += f"queue {both('queue_*_ms')} ms"
    if mile.get("loss_down") or mile.get("loss_up"):
        text += f", loss {both('loss_*', 100)} %"
    return text


def command(results: Results) -> str:
    told = results.meta.get("command")
    return shlex.join(map(str, told)) if isinstance(told, list) else NOT_TOLD


def again(results: Results) -> str:
    """Commands that do it all once more."""
    commit = str(results.meta.get("commit") or "")
    told = command(results)
    run = told if told != NOT_TOLD else f"tm3lab run {results.name}"
    changed = " (it was built with changes that are in no commit)" if commit.endswith("+") else ""
    lines = [f"git checkout {commit.rstrip('+')[:12]}{changed}"] if commit else []
    return "\n".join([*lines, "make", f"sudo build/{run}"])


def by_this_version(results: Results) -> str:
    """The same plan, seeds and TCP settings; the folder by where it is in the project."""
    path = results.folder.resolve()
    there = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path.name
    return f"sudo build/tm3lab again {shlex.quote(str(there))}"


def footer(results: Results) -> str:
    return f"{results.name} / {results.folder.name}: written by tm3lab"
