# SPDX-License-Identifier: MIT
"""What of a folder of results is kept in results/curated, and that it points to nothing else.

Logs and captures are too large to keep. A line of runs.jsonl says where its run's are: where they
are not kept, it says that there are none.
"""

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from experiments import report
from experiments.folder import KINDS, META, RUNS, FolderError, Results

FILES = (META, RUNS, "notes.json")
PLOTS = "plots"


def folders(root: Path) -> list[Path]:
    """In `root`/curated."""
    return sorted(path.parent for path in (root / "curated").glob(f"*/*/{RUNS}"))


def add(folder: Path, root: Path) -> Path:
    """A copy in `root`/curated, with its report. Raises FolderError."""
    results = Results.open(folder)
    into = root / "curated" / results.plan.experiment / folder.resolve().name
    if into.exists():
        raise FolderError(f"{into} is there already")
    into.mkdir(parents=True)
    for name in FILES:
        if (folder / name).is_file():
            shutil.copy2(folder / name, into / name)
    if (folder / PLOTS).is_dir():
        shutil.copytree(folder / PLOTS, into / PLOTS)
    unlink(into)
    write(into)
    return into


def unlink(folder: Path) -> None:
    """Nothing was measured since: the file is as old as it was, so its plots stay."""
    path = folder / RUNS
    text = "".join(_lines(folder))
    if text != path.read_text():
        before = path.stat()
        path.write_text(text)
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def lost(folder: Path) -> bool:
    """Whether a run points to what is not there."""
    return "".join(_lines(folder)) != (folder / RUNS).read_text()


def _lines(folder: Path) -> Iterator[str]:
    for line in (folder / RUNS).read_text().splitlines(keepends=True):
        record = json.loads(line)
        gone = [kind for kind in KINDS if record.get(kind) and not (folder / record[kind]).is_dir()]
        yield json.dumps(record | dict.fromkeys(gone), allow_nan=False) + "\n" if gone else line


def write(folder: Path) -> None:
    """Report and summary anew. The plots are what was drawn then, whatever times a checkout gave
    their files."""
    for path in (folder / PLOTS).glob("*"):
        os.utime(path)
    report.write(folder)
