"""Reads a run folder; the remains of a crash never make it fail.

A cut line is skipped and counted, a window that was opened and never closed is lost, a process
that is missing is named.
"""

from __future__ import annotations

import json
import re
import time
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from rlprof.errors import RunError, one_line, shown
from rlprof.rundir import SALVAGED, read_regular
from rlprof.types import Target
from rlprof_run._clock import clock_at, unbroken
from rlprof_run._files import files, odd
from rlprof_run._lines import read_lines
from rlprof_run._lost import lost_spans
from rlprof_run._manifest import ManifestReader
from rlprof_run._members import with_missed
from rlprof_run._offsets import aligned
from rlprof_run._on_nodes import left_of
from rlprof_run._run import Answer, CaptureResult, Process, Run, Skipped

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from rlprof.types import Clock

_UNREADABLE = (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError)
"""Exceptions of a `run.json` that is not one of ours."""


LATEST, RUNS = "latest", "outputs/profile"
"""The word for the latest run, and the folder where that is looked for."""

_MOST_RANKS = 100_000
"""No run has more of a role; a line of a manifest may say anything."""

_TIMES = (
    "configuring_ns", "configured_ns", "opened_ns", "started_ns", "closed_ns", "exported_ns",
)  # fmt: skip

_NO_TIME_NS = 10**19
"""From here on, the year 2286, no clock is meant."""


def find_runs(run_dir: Path) -> list[Path]:
    """List the run folders in *run_dir*, each attempt of each run, the latest last."""
    found = []
    for glob in ("*", "*/attempt_*"):
        for file in run_dir.glob(f"{glob}/run.json"):
            with suppress(OSError):  # it has just been removed
                found.append((_opened_ns(file), file.parent))
    return [path for _, path in sorted(found)]


def _opened_ns(file: Path) -> int:
    """Return when a run was opened; if its header cannot be read, when that was written."""
    with suppress(*_UNREADABLE):
        opened_ns = int(json.loads(read_regular(file))["owner"]["opened_ns"])
        if 0 <= opened_ns < _NO_TIME_NS:
            return opened_ns
    return file.stat().st_mtime_ns


def named(name: str | Path) -> Path:
    """Return the folder that *name* stands for, of a run or of runs.

    Unless there is a file of that name, `latest` stands for `outputs/profile`, and the id of a run
    there for its last attempt.
    """
    path = Path(name)
    if path.exists():
        return path
    if str(name) == LATEST:
        return Path(RUNS)
    own = Path(RUNS) / path
    attempts = [one for one in find_runs(Path(RUNS)) if own in (one, one.parent)]
    return attempts[-1] if attempts else path


def youngest(name: str | Path) -> Path:
    """Return the run folder that *name* stands for: a folder of runs stands for its latest run."""
    path = named(name)
    if path.is_dir() and not (path / "run.json").exists():
        return next(reversed(find_runs(path)), path)
    return path


def read(path: str | Path) -> Run:
    """Read a run; *path* is its folder, or a folder of runs, which stands for the latest one.

    The id of a run in `outputs/profile` will do, and `latest` for the latest one there.
    Raise RunError if there is none.
    """
    path, header = youngest(path), None
    try:
        header = json.loads(read_regular(path / "run.json"))
        owner = header["owner"]
        run_id, attempt, opened_ns = (
            str(header["run_id"]),
            int(owner["attempt"]),
            int(owner["opened_ns"]),
        )
        if not 0 <= opened_ns < _NO_TIME_NS:
            raise ValueError(f"opened_ns {shown(opened_ns)} is no time")
        config = dict(header.get("config") or {})
        expected = {
            role: "all" if ranks == "all" else [int(rank) for rank in ranks]
            for role, ranks in dict(header.get("expected") or {}).items()
        }
    except (FileNotFoundError, NotADirectoryError):
        raise RunError(_no_run(path)) from None
    except _UNREADABLE as exc:
        raise RunError(f"{path / 'run.json'}: cannot be read: {_why(exc, header)}") from exc
    problems: list[str] = []
    processes: list[Process] = []
    captures: list[CaptureResult] = []
    skipped: list[Skipped] = []
    answers: list[Answer] = []
    readers: dict[str, ManifestReader] = {}
    manifests = files(path / "manifest", ".jsonl", problems)
    for file in manifests:
        if not file.name.startswith(SALVAGED):
            readers[file.stem] = ManifestReader(file.stem)
            for line in read_lines(file, problems):
                readers[file.stem].take(line)
    for file in manifests:
        if file.name.startswith(SALVAGED):  # lines about others, read after their own
            for line in read_lines(file, problems):
                of = line.get("of")
                if isinstance(of, str) and of in readers:
                    readers[of].take(line)
    for reader in readers.values():
        file = path / "manifest" / f"{reader.name}.jsonl"
        lacking = "first line" if reader.target is None else "clock" if not reader.clocks else ""
        if lacking:
            problems.append(f"manifest/{file.name}: has no {lacking}; left out")
            continue
        process = reader.process(age_s=time.time() - file.stat().st_mtime)
        processes.append(process)
        captures += reader.captures(process)
        skipped += reader.skipped
        answers += reader.answers(process)
        problems += reader.problems(process)
    for name in ("spans", "counters"):  # read where they are asked for
        files(path / name, ".jsonl", problems)
    processes, captures = _with_others_lines(processes, captures, readers.values())
    attached = tuple(one for reader in readers.values() for one in reader.attached.values())
    for capture in captures:
        for artifact in capture.artifacts:
            why = odd(path / artifact.path)
            if why:
                why = "is in the manifest and not on disk" if why == "is not there" else why
                problems.append(f"{artifact.path}: {why}")
    first: dict[str, int] = {}
    for capture in captures:
        first[capture.window.id] = min(
            capture.opened_ns, first.get(capture.window.id, capture.opened_ns)
        )
    captures.sort(
        key=lambda c: (
            c.window.start_step, first[c.window.id], c.target.role, c.target.rank, c.opened_ns,
        )
    )  # fmt: skip
    return Run(
        path=path,
        run_id=run_id,
        attempt=attempt,
        config=config,
        opened_ns=opened_ns,
        processes=tuple(sorted(processes, key=lambda p: (p.target.role, p.target.rank, p.name))),
        captures=tuple(captures),
        skipped=tuple(skipped),
        answers=tuple(sorted(answers, key=lambda a: (a.id, a.target.role, a.target.rank))),
        attached=attached,
        is_guest=any(reader.names_calls for reader in readers.values()),
        left=left_of(readers.values(), [p.name for p in processes if p.state == "running"]),
        missing=(
            *_missing(expected, processes, readers.values()),
            *_unattached(config, readers.values()),
        ),
        problems=(
            *problems,
            *(f"{file}: {why}" for file, why in lost_spans(path, processes, attached).items()),
        ),
    )


def _why(exc: Exception, header: Any) -> str:
    """Describe what is wrong with an unreadable header, and first which version wrote it."""
    why = str(exc.strerror or exc) if isinstance(exc, OSError) else repr(exc)
    if isinstance(exc, json.JSONDecodeError):
        why = f"it is no JSON (line {exc.lineno}: {exc.msg})" if exc.doc.strip() else "it is empty"
        why += "; restore it, or remove the run folder"
    theirs = header.get("rlprof") if isinstance(header, dict) else None
    with suppress(metadata.PackageNotFoundError):
        mine = metadata.version("rlprof-run")
        if isinstance(theirs, str) and _release(theirs) > _release(mine):
            theirs = one_line(theirs, longest=40)
            return (
                f"written by rlprof {theirs}, newer than this {mine}; install the newer one ({why})"
            )
    return why


def _release(version: str) -> list[int]:
    match = re.match(r"\d{1,9}(?:\.\d{1,9}){0,3}(?!\d)", version)
    return [int(number) for number in match[0].split(".")] if match else []


def _with_others_lines(
    processes: list[Process], captures: list[CaptureResult], readers: Collection[ManifestReader]
) -> tuple[list[Process], list[CaptureResult]]:
    """Add what a fleet's driver knows about its members: their clocks, and their failures.

    The times of captures are wall-clock times then.
    """
    offsets = [offset for reader in readers for offset in reader.offsets]
    processes, captures = aligned(processes, captures, offsets)
    clocks = {process.name: unbroken(process.clocks)[0] for process in processes}
    all_captures = with_missed(captures, readers)
    return processes, [_placed(one, clocks.get(one.process)) for one in all_captures]


def _placed(capture: CaptureResult, clocks: list[Clock] | None) -> CaptureResult:
    """Turn the monotonic times of *capture* into wall-clock times, as those of spans are.

    A capture that only a driver without *clocks* reported has no time.
    """
    if clocks is None:
        return attrs.evolve(capture, opened_ns=0)
    ahead_ns = clock_at(clocks, capture.opened_ns)[0] - capture.opened_ns
    found = {name: getattr(capture, name) for name in _TIMES}
    return attrs.evolve(
        capture, **{name: at + ahead_ns for name, at in found.items() if at is not None}
    )


def _no_run(path: Path) -> str:
    missing = "no run.json here" if path.exists() else "is not there"
    return f"{path}: {missing}; name a run folder, <run_dir>/<run id>"


def _unattached(config: Mapping[str, Any], readers: Iterable[ManifestReader]) -> Iterator[Target]:
    """Name an engine of each role whose engine should be recorded, but was never attached."""
    roles, attached = (
        config.get("roles"),
        {role for reader in readers for role, _ in reader.attached},
    )
    if not isinstance(roles, dict) or config.get("steps") in (None, "none"):
        return
    for role, own in roles.items():
        if isinstance(own, dict) and own.get("engine") and role not in attached:
            yield Target(role, replica=0)


def _missing(
    expected: Mapping[str, Any], processes: list[Process], readers: Collection[ManifestReader]
) -> Iterator[Target]:
    """Compare the ranks each role should have with those that wrote something, here or elsewhere.

    An actor of a fleet may stand in several roles, and writes as the first of them.
    """
    worlds: dict[str, int] = {}
    wrote = [process.target for process in processes]
    wrote += [target for reader in readers for target in reader.wrote_elsewhere]
    seen = {(target.role, target.rank) for target in wrote}
    posts = [post for reader in readers for post in reader.attached.values()]
    for target in (*wrote, *(post.target for post in posts)):
        worlds[target.role] = max(target.world_size, worlds.get(target.role, 0))
    for post in posts:
        worlds[post.role] = max(worlds.get(post.role, 0), *(rank + 1 for rank in post.ranks), 1)
        if (post.target.role, post.target.rank) in seen:
            seen |= {(post.role, rank) for rank in post.ranks}
    for role, ranks in expected.items():
        world = min(worlds.get(role, 1), _MOST_RANKS)
        for rank in range(world) if ranks == "all" else ranks:
            if (role, rank) not in seen:
                yield Target(role, rank, max(world, rank + 1))
