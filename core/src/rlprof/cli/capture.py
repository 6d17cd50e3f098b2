"""`rlprof capture RUN`: have a run that is going on record its next steps."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlprof import control
from rlprof.cli import _words
from rlprof.cli._arguments import duration
from rlprof.cli._live import the_live_run
from rlprof.cli._set import Settings, misfits, read_set
from rlprof.cli._table import plain, seconds, size, table
from rlprof.config import Config, load_config, parse_ranks
from rlprof.errors import ConfigError, RunError, shown
from rlprof.fleets import DRIVER
from rlprof.plugins import drives
from rlprof.rundir import read
from rlprof.schedule import LAST_STEP

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rlprof.rundir import Run
    from rlprof.types import Target

_TICK_S = 0.5
_DONE = ("whole", "partial", "empty", "failed", "lost")


def add(subparsers: Any) -> None:
    """Describe the command."""
    parser = subparsers.add_parser(
        "capture",
        help="have a live run record its next steps, without a restart",
        description="Ask RUN, which is going on, to record the next steps of a role that nothing "
        "else records. Each process of the role sees the request within a second or two and opens "
        "its window when its next step begins. The request is checked like a config; request and "
        "answers are in the manifest. Waits until all is on disk (Ctrl-C stops the waiting, not "
        "the recording).",
        epilog="examples:\n"
        "  rlprof capture outputs/profile --next 2 --role actor\n"
        "  rlprof capture RUN --role actor --tool torch --set contents=[cpu,stack]\n"
        "  rlprof capture RUN --role rollout --rank all --phase rollout --at 120\n",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "path", metavar="RUN", help="a run folder, or a folder of runs of which one is going on"
    )
    parser.add_argument("--role", help="whose steps (default: the role, if the run has just one)")
    parser.add_argument(
        "--next", type=int, default=1, metavar="N", help="how many steps (default: 1)"
    )
    parser.add_argument(
        "--at",
        type=int,
        default=0,
        metavar="STEP",
        help="begin at this step, so that all ranks record the same ones (default: the next)",
    )
    parser.add_argument(
        "--rank",
        metavar="RANKS",
        help="global ranks: all, 3 or 0,7 (default: those of the config, else 0)",
    )
    parser.add_argument(
        "--phase",
        action="append",
        metavar="PHASE",
        help="record this phase (may be repeated; default: those of the config, else all)",
    )
    parser.add_argument(
        "--mode", choices=("discrete", "continuous"), help="default: that of the config"
    )
    parser.add_argument(
        "--tool", action="append", metavar="TOOL", help="record with this tool (may be repeated; "
        "default: those of the config; not for a role whose engine the tools record inside)",
    )  # fmt: skip
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="an option of the tool, over those of the config, in YAML: contents=[cpu,stack]; "
        "with several tools, or inside an engine, torch.contents=[cpu]",
    )
    parser.add_argument("--no-wait", action="store_true", help="ask, and return at once")
    parser.add_argument(
        "--timeout",
        type=duration,
        default=3600.0,
        metavar="S",
        help="wait so long at most (default: 3600)",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Ask, then follow what becomes of it."""
    recorded = the_live_run(Path(args.path))
    config = load_config(recorded.config)  # which `run.json` keeps
    request, settings = _request(args, recorded, config)
    control.check(request, config)
    if faults := misfits(settings, request, config):
        raise ConfigError(faults, "rlprof capture")
    meant = _meant(recorded, request, config)
    if not meant:
        raise RunError(f"{recorded.path}: {_nobody(recorded, request, config)}")
    control.write(recorded.path, request)
    what = "1 step" if request.next == 1 else f"{request.next} steps"
    print(f"request {request.id}: the next {what} of {request.role}")
    if args.no_wait:
        print(f"see what became of it with: rlprof ls {recorded.path}")
        return 0
    try:
        return _follow(recorded.path, request, len(meant), args.timeout)
    except KeyboardInterrupt:
        print(f"\nnot waiting any more; the request stands: rlprof ls {recorded.path}")
        return 130


def _request(
    args: argparse.Namespace, recorded: Run, config: Config
) -> tuple[control.Request, Settings]:
    role = args.role or _only_role(recorded)
    own = config.roles.get(role)
    faults: list[str] = []
    ranks: Any = (0,) if own is None else own.ranks
    if args.rank is not None:
        words = args.rank.split(",")
        numbers = [int(word) if word.strip().isdecimal() else word for word in words]
        try:
            ranks = parse_ranks("all" if args.rank == "all" else numbers)
        except ValueError as exc:
            faults.append(f"--rank: {exc}")
    for name, value, least in (("--next", args.next, 1), ("--at", args.at, 0)):
        if not least <= value <= LAST_STEP:
            faults.append(f"{name}: expected {least} to {LAST_STEP}, got {shown(value)}")
    tools = args.tool
    used = tools or (config.tools_of(role) if own is not None else config.tool)
    names = [*used, *([own.engine] if own is not None and own.engine else [])]
    inside = _inside(config, role)
    if tools and inside is not None:
        faults.append(_beside(role, config))
    settings = read_set(args.set, names, () if tools else inside or (), faults)
    if faults:
        raise ConfigError(faults, "rlprof capture")
    request = control.Request(
        id=control.new_id(),
        role=role,
        next=args.next,
        at=args.at,
        ranks=ranks,
        phases=None if args.phase is None else tuple(args.phase),
        mode=args.mode,
        tool=None if tools is None else tuple(tools),
        options=settings.options,
        by=control.asker(),
    )
    return request, settings


def _only_role(recorded: Run) -> str:
    live = {p.name for p in recorded.processes if p.state == "running"}
    found = {p.target.role for p in recorded.processes if p.name in live}
    found |= {one.role for one in recorded.attached if one.process in live}
    if DRIVER not in recorded.config.get("roles", ()):  # it opens the windows of others
        found -= {DRIVER}
    roles = sorted(found)
    if len(roles) != 1:
        there = ", ".join(roles) or "none"
        raise RunError(f"{recorded.path}: say which role to record with --role (there: {there})")
    return roles[0]


def _inside(config: Config, role: str) -> tuple[str, ...] | None:
    """Name the tools that record inside the engine of *role*; None: its plugin drives none."""
    own = config.roles.get(role)
    if own is None or own.engine is None or not drives(own.engine):
        return None
    return config.tools_inside(role)


def _beside(role: str, config: Config) -> str:
    """Say that tools cannot be chosen anew for an engine, which was launched for its own."""
    there = ", ".join(config.tools_inside(role)) or "none"
    return (
        f"--tool: {role} is recorded by its engine, {config.roles[role].engine}, and by the tools "
        f"it was launched with ({there}); leave --tool out, --set TOOL.KEY=VALUE changes theirs"
    )


def _meant(recorded: Run, request: control.Request, config: Config) -> set[_Who]:
    """Say who is asked: processes, and what was attached to one; each once, whoever tells of it."""
    live = {process.name for process in recorded.processes if process.state == "running"}
    found = [
        one
        for one in recorded.attached
        if one.process in live
        and one.role == request.role
        and any(map(request.includes, one.ranks))
    ]
    own = config.roles.get(request.role)
    has_tools = own is None or bool(request.tool or config.tools_of(request.role))
    held_by = {one.process for one in found} if not has_tools else set()
    return {_who(one.target) for one in found} | {
        _who(one.target)
        for one in recorded.processes
        if one.name in live - held_by  # whose engine answers
        and one.target.role == request.role
        and request.includes(one.target.rank)
    }


_Who = tuple[str, int, int | None]
"""A target without what its driver and its own process may know differently."""


def _who(target: Target) -> _Who:
    return target.role, target.rank, target.replica


def _nobody(recorded: Run, request: control.Request, config: Config) -> str:
    running = [process for process in recorded.processes if process.state == "running"]
    names = {process.name for process in running}
    live = sorted({
        *(str(process.target) for process in running),
        *(str(one.target) for one in recorded.attached if one.process in names),
    })  # fmt: skip
    shown = ", ".join(live[:8]) + (f" and {len(live) - 8} more" if len(live) > 8 else "")
    ranks = "all ranks" if request.ranks is None else f"rank {', '.join(map(str, request.ranks))}"
    told = f"nobody to ask for {request.role}, {ranks} (going on: {shown or 'none'})"
    if request.role in config.roles:
        told += "; it may not have been started or attached yet"
    return told


def _follow(path: Path, request: control.Request, expected: int, timeout_s: float) -> int:
    """Show what becomes of *request* until nothing more will."""
    told: dict[str, str] = {}
    deadline = time.monotonic() + timeout_s
    while True:
        recorded = read(path)
        answers = [answer for answer in recorded.answers if answer.id == request.id]
        for answer in answers:
            _tell(str(answer.target), _words.answer(answer, recorded), told)
        captures = [c for c in recorded.captures if c.request == request.id]
        for capture in captures:
            _tell(f"{capture.window.id} {capture.target} {capture.tool}", capture.state, told)
        all_answered = len(answers) >= max(1, expected)
        is_over = all_answered and all(a.state != "waiting" for a in answers)
        if is_over and all(c.state in _DONE for c in captures):
            return _summary(recorded, request)
        if not recorded.is_running:
            _summary(recorded, request)
            print("rlprof: the run has ended before all was recorded", file=sys.stderr)
            return 1
        if time.monotonic() > deadline:
            _summary(recorded, request)
            print(f"rlprof: not done after {timeout_s:g} s; the request stands", file=sys.stderr)
            return 1
        time.sleep(_TICK_S)


def _tell(who: str, what: str, told: dict[str, str]) -> None:
    """Print what is new."""
    if told.get(who) != what:
        told[who] = what
        print(f"  {who}: {what}", flush=True)


def _summary(recorded: Run, request: control.Request) -> int:
    """Print the table of what there is now; 0 if something was recorded and nothing failed."""
    captures = [c for c in recorded.captures if c.request == request.id]
    answers = [a for a in recorded.answers if a.id == request.id]
    skipped = [s for s in recorded.skipped if s.request == request.id]
    for line in _unique(f"  step {s.step}, {s.target}: {s.reason}" for s in skipped):
        print(line)
    if captures:
        rows = [
            (
                c.window.id, str(c.target), c.tool, c.state,
                size(sum(a.size for a in c.artifacts)), seconds(c.stop_s),
            )
            for c in captures
        ]  # fmt: skip
        head = ("WINDOW", "TARGET", "TOOL", "STATE", "SIZE", "STOP")
        print(f"\n{table(head, rows, right=('SIZE', 'STOP'))}\n")
    for line in _words.notes(recorded, captures):
        print(f"  {plain(line, 1000)}")
    good = captures and all(c.state in ("whole", "partial") for c in captures)
    if good and answers and all(_words.is_served(a, recorded) for a in answers):
        print(f"look at it with: rlprof export {recorded.path} --to timeline")
        return 0
    print(f"see what became of it with: rlprof ls {recorded.path}")
    return 1


def _unique(lines: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(lines))
