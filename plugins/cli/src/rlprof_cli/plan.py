"""`rlprof plan FILE`: show which targets a config records, when, with what, and at what cost."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from rlprof.config import check_config, load_config
from rlprof.errors import ConfigError
from rlprof.rundir import as_json
from rlprof.schedule import Steps
from rlprof_cli._advice import cautions, engine_words
from rlprof_cli._estimate import estimates
from rlprof_cli._of_verl import refuse_verl
from rlprof_cli.arguments import add_json, duration, steps
from rlprof_cli.offers import drives
from rlprof_cli.table import table
from rlprof_run import read

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from rlprof.config import Config, ToolUse

_MOST = 100
"""Lines shown."""


def add(subparsers: Any) -> None:
    """Describe the command."""
    parser = subparsers.add_parser(
        "plan",
        help="show what a config would record",
        description="Show the windows that FILE opens: one line per step and role. Then estimate "
        "what each tool costs on this host; for that, `rlprof check` must find no fault in FILE, "
        "and the plugins must be installed. A separate process measures each tool for a few "
        "seconds, once; the result is kept. An estimate is an upper bound, for a window of 1 "
        "second in which the tool has no pause: real phases may be far shorter and do less. With "
        "--like, costs come from an earlier run with the same tool instead.",
    )
    parser.add_argument("file", metavar="FILE", help="a YAML file")
    parser.add_argument(
        "--steps",
        type=steps,
        metavar="STEPS",
        help="show these steps: 10, or 3,5-7 (default: those of the config)",
    )
    how_long = parser.add_mutually_exclusive_group()
    how_long.add_argument(
        "--window-s",
        type=duration,
        default=None,
        metavar="S",
        help="duration of a window without recording (default: 1 second)",
    )
    how_long.add_argument(
        "--like",
        metavar="RUN",
        help="take durations and costs of windows from this earlier run",
    )
    parser.add_argument(
        "--no-estimate",
        action="store_true",
        help="show the windows only, also where the plugins are not installed",
    )
    add_json(parser, "the windows, without an estimate,")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the table."""
    refuse_verl(args.file)
    windows_only = args.json or args.no_estimate
    config = load_config(args.file) if windows_only else check_config(args.file)[0]
    shown, words = args.steps, ""
    if shown is None:
        shown = [chosen[: _MOST + 1] for chosen in config.steps.ranges]  # some have no end
    else:
        words = f"; looking at {Steps(tuple(shown))}"
    if args.json:
        print(as_json(_values(config, shown), indent=2))
        return 0
    earlier = None if args.like is None else read(args.like)
    if not config.enabled:
        print(f"{args.file}: off (enabled: false)")
        return 0
    if not any(config.records(role) for role in config.roles):
        print(f"{args.file}: only spans and counters are written (tool: none)")
        return 0
    rows = _rows(config, shown)
    print(f"mode {config.mode}, steps {config.steps}{words}\n")
    if not rows:
        print("nothing is recorded in these steps")
        return 0
    print(table(("STEP", "ROLE", "RANKS", "TOOLS", "WINDOWS"), rows, right=("STEP",)))
    print(f"\nwritten to {config.run_dir}/<run id>/{_folders(config, rows)}")
    if not args.no_estimate:
        sys.stdout.flush()  # measuring takes seconds; who reads both streams has them in order
        print(f"\n{estimates(config, earlier, args.window_s)}")
        found = cautions(use for role in config.roles for use in _uses(config, role))
        print("".join(f"\n{words}" for words in found), end="\n" if found else "")
    return 0


def _values(config: Config, shown: Sequence[range]) -> list[dict[str, Any]]:
    """Return the rows of the table as plain data."""
    rows = _rows(config, shown) if config.enabled else []
    names = {role: [use.name for use in _uses(config, role)] for role in config.roles}
    return [
        {
            "step": int(step), "role": role, "ranks": ranks.split(", "),
            "tools": names[role] or tools.split(", "),
            "windows": windows.split(", "),
        }
        for step, role, ranks, tools, windows in rows
        if step.isdecimal()
    ]  # fmt: skip


def _folders(config: Config, rows: list[tuple[str, ...]]) -> str:
    """Name the folders of the first step in *rows*, of processes and of engines."""
    part = "<phase>" if config.mode == "discrete" else "step"
    names = {name for _, name, *_ in rows if name}
    kinds = []
    if any(config.tools_of(name) for name in names):
        kinds.append("<role>_<rank>_of_<world>/")
    if any(config.roles[name].engine for name in names):
        kinds.append("<role>_replica_<n>/")
    return f"step_{int(rows[0][0]):06d}/{part}/" + " or ".join(kinds)


def _rows(config: Config, shown: Sequence[range]) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    tools = {name: _tools(config, name) for name in config.roles}
    for step in (one for part in shown for one in part if one in config.steps):
        if len(rows) >= _MOST:
            rows.append(("...", "", "", "", "and more; name some by --steps"))
            break
        for name, role in config.roles.items():
            ranks = "all" if role.ranks is None else ", ".join(map(str, role.ranks))
            windows = _windows(config, name, step)
            if windows:
                rows.append((str(step), name, ranks, tools[name], windows))
    return rows


def _tools(config: Config, role: str) -> str:
    """Name what records *role*; what an engine does is not known where its plugin is not."""
    names, engine = list(config.tools_of(role)), config.roles[role].engine
    if engine is None:
        return ", ".join(names)
    uses = _uses(config, role)
    if not uses:
        return ", ".join([*([] if drives(engine) else names), f"engine {engine}"])
    return ", ".join(use.name if use.kind == "tool" else _short(engine_words(use)) for use in uses)


def _short(words: str) -> str:
    """Leave out what the way of an engine depends on, which `rlprof check` says."""
    first, more, _ = words.partition("; ")
    return f"{first})" if more else words


def _uses(config: Config, role: str) -> tuple[ToolUse, ...]:
    """Load what *role* uses; return nothing if that fails: check reports it."""
    try:
        return check_config(config, roles=[role])[1][role]
    except ConfigError:
        return ()


def _windows(config: Config, role: str, step: int) -> str:
    schedule = config.schedule(role)
    if step not in schedule.steps:
        return ""  # a role without tools: its spans are kept, and no window opens
    if schedule.mode == "continuous":
        if schedule.join_steps and step - 1 in schedule.steps:
            return ""  # part of the window that opened before
        window = schedule.at_step(step)
        return window.id if window else ""
    if schedule.phases is None:
        return "one per outermost phase"
    return ", ".join(f"{step}/{phase}" for phase in schedule.phases)
