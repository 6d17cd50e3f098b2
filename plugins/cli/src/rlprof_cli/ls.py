"""`rlprof ls RUN`: the captures of a run, and what is missing, and why; `rlprof ls DIR`: runs."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import attrs

from rlprof.config import load_config
from rlprof.errors import ConfigError, RunError
from rlprof.rundir import as_json
from rlprof_cli import _words
from rlprof_cli._step import newest_step, step_words
from rlprof_cli.arguments import add_run
from rlprof_cli.table import plain, seconds, size, table
from rlprof_run import LATEST, find_runs, named, read, youngest

if TYPE_CHECKING:
    import argparse
    from pathlib import Path

    from rlprof_run import CaptureResult, Run


def add(subparsers: Any) -> None:
    """Describe the command."""
    parser = subparsers.add_parser(
        "ls",
        help="list runs, or what one run has captured",
        description="With a run folder: every capture with its state, size and cost, then what "
        "was skipped, missing or cut, and why. With a folder of runs: one line per run. The runs "
        "may be live.",
    )
    add_run(parser, runs="a folder of runs")
    parser.add_argument("--files", action="store_true", help="show the path of every file")
    parser.add_argument(
        "--json",
        action="store_true",
        help="print the values of rlprof.read(RUN) as JSON; for a folder of runs, a list of them",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the tables."""
    path = youngest(LATEST) if args.path == LATEST else named(args.path)
    if not path.exists():
        raise RunError(f"{path}: no such folder; name a run folder, or a folder of runs")
    runs = [] if (path / "run.json").exists() or not path.is_dir() else find_runs(path)
    if args.json:
        print(as_json([_brief(one) for one in runs] if runs else _values(read(path)), indent=2))
    elif runs:
        print(_runs(runs))
    else:
        print(_run(read(path), files=args.files))
    return 0


def _values(run: Run) -> dict[str, Any]:
    """Return a run as plain data, under the names of docs/api.md."""
    part = ("selection", "_times")
    known = attrs.asdict(run, filter=lambda field, _: field.name not in part)
    return {**known, "state": run.state, "step": _step(run), "bytes": _bytes(run)}


def _brief(path: Path) -> dict[str, Any]:
    try:
        run = read(path)
    except RunError as exc:
        return {"path": path, "state": "unreadable", "problems": [str(exc)]}
    return {
        "path": path,
        "run_id": run.run_id,
        "attempt": run.attempt,
        "state": run.state,
        "died": _died(run),
        "step": _step(run),
        "opened_ns": run.opened_ns,
        "processes": len(run.processes),
        "captures": len(run.captures),
        "bytes": _bytes(run),
    }


def _step(run: Run) -> int | None:
    """Return the newest step of a live run."""
    newest = newest_step(run)
    return None if newest is None else newest[0]


def _died(run: Run) -> int:
    return sum(process.state == "died" for process in run.processes)


def _state(run: Run) -> str:
    """Return the state of the run, and how many processes it lost before."""
    count = 0 if run.state == "died" else _died(run)
    return f"{run.state}, {count} died" if count else run.state


def _bytes(run: Run) -> int:
    """Count what the run has recorded: artifacts, spans and counters."""
    files = [file for kind in ("spans", "counters") for file in run.path.glob(f"{kind}/*.jsonl")]
    kept = sum(file.lstat().st_size for file in files)
    return kept + sum(artifact.size for one in run.captures for artifact in one.artifacts)


def _runs(paths: list[Path]) -> str:
    rows = []
    for path in paths:
        try:
            run = read(path)
        except RunError:  # `rlprof ls` of this run has the whole message
            rows.append((str(path), "-", "unreadable", "-", "-", "-"))
            continue
        rows.append((
            str(path), _when(run), _state(run), str(len(run.processes)), str(len(run.captures)),
            size(_bytes(run)),
        ))  # fmt: skip
    head = ("RUN", "OPENED", "STATE", "PROCESSES", "CAPTURES", "SIZE")
    return table(head, rows, right=("PROCESSES", "CAPTURES", "SIZE"))


def _run(run: Run, *, files: bool) -> str:
    attempt = f", attempt {run.attempt}" if run.attempt > 1 else ""
    processes = _count(len(run.processes), "process", "es")
    captures = _count(len(run.captures), "capture")
    state = ", ".join(filter(None, [_state(run), step_words(run)]))
    title = f"run {plain(run.run_id)}{attempt}: {state}, opened {_when(run)}"
    parts = [f"{title}, {processes}, {captures}, {size(_bytes(run))}"]
    if run.captures:
        numbers = ("EVENTS", "SIZE", "START", "STOP", "EXPORT")
        rows = [_row(capture) for capture in run.captures]
        parts.append(table(("WINDOW", "TARGET", "TOOL", "STATE", *numbers), rows, right=numbers))
    else:
        parts.append(f"nothing was captured{_why_not(run)}")
    parts += _listed("files", [a.path for c in run.captures for a in c.artifacts] if files else [])
    parts += _listed("notes", _words.notes(run, run.captures))
    skipped = [f"step {s.step}, {s.target}: {s.reason}" for s in run.skipped]
    parts += _listed("skipped", skipped)
    parts += _listed("requests", _words.answers(run))
    parts += _listed("left on other nodes", _words.left(run))
    parts += _listed("missing", _words.missing(run))
    parts += _listed("problems", _words.problems(run))
    parts += _listed("to look at it", _words.commands(run))
    parts += _listed("exports", [str(path) for path in sorted((run.path / "exports").glob("*"))])
    return "\n\n".join(parts)


def _why_not(run: Run) -> str:
    """Say why nothing was due in the run; empty if something was."""
    try:
        config = load_config(run.config)
    except ConfigError:  # of another version
        return ""
    if config.steps or run.answers:
        return ""
    if not any(map(config.records, config.roles)):
        return "; the config asks for spans and counters only"
    slow = "no step was slow enough, and " if config.slow_step else ""
    return f"; {slow}nothing is recorded until it is asked for"


def _row(capture: CaptureResult) -> tuple[str, ...]:
    events = [a.events for a in capture.artifacts if a.events is not None]
    return (
        capture.window.id, str(capture.target), capture.tool, _words.state(capture),
        f"{sum(events):,}" if events else "-",
        size(sum(artifact.size for artifact in capture.artifacts)) if capture.artifacts else "-",
        seconds(capture.start_s), seconds(capture.stop_s), seconds(capture.export_s),
    )  # fmt: skip


def _listed(title: str, items: list[str]) -> list[str]:
    lines = [f"  {plain(item, 1000)}" for item in items]
    return ["\n".join([f"{title}:", *lines])] if items else []


def _when(run: Run) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(run.opened_ns / 1e9))


def _count(number: int, word: str, plural: str = "s") -> str:
    return f"{number} {word}" + (plural if number != 1 else "")
