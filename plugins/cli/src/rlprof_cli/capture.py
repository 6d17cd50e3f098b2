"""`rlprof capture RUN`: record upcoming steps of a live run."""

from __future__ import annotations

import argparse
from typing import Any

from rlprof.config import load_config
from rlprof_cli._cancel import cancel
from rlprof_cli._live import the_live_run
from rlprof_cli._progress import follow, stands
from rlprof_cli._requests import joined, meant, requests
from rlprof_cli._step import newest_step
from rlprof_cli._words import once
from rlprof_cli.arguments import add_run, duration, names
from rlprof_live import control
from rlprof_run import LATEST, named, youngest

_JOIN_S = 10.0
"""How long ranks that have not opened the run are waited for."""


def add(subparsers: Any) -> None:
    """Describe the command."""
    parser = subparsers.add_parser(
        "capture",
        help="record upcoming steps of a live run, without a restart",
        description="Ask a live run to record upcoming steps of one or more roles. Steps that the\n"
        "config records anyway do not count. Each process of a role sees the request within\n"
        "a second or two and opens its window when its next step begins. The request is\n"
        "checked like a config; the manifest keeps it and the answers. The command waits\n"
        "until everything is on disk; Ctrl-C ends the wait, not the recording: --cancel does.",
        epilog="examples:\n"
        "  rlprof capture --next 2\n"
        "  rlprof capture RUN --role actor --tool torch --set contents=[cpu,stack]\n"
        "  rlprof capture RUN --role actor,rollout --rank all --at 120\n"
        "  rlprof capture RUN --cancel\n",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_run(parser, runs="a folder of runs with one live run")
    parser.add_argument(
        "--role",
        action="extend",
        type=names,
        metavar="ROLE",
        help="record this role; repeat it, or name several: actor,rollout. Roles of one process "
        "record the same steps (default: every role of the config)",
    )
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
        help="global ranks: all, 3 or 0,7 (default: as in the config, else 0)",
    )
    parser.add_argument(
        "--phase",
        action="append",
        metavar="PHASE",
        help="record this phase (may be repeated; default: as in the config, else all)",
    )
    parser.add_argument(
        "--mode", choices=("discrete", "continuous"), help="default: as in the config"
    )
    parser.add_argument(
        "--tool", action="append", metavar="TOOL", help="record with this tool (may be repeated; "
        "default: as in the config; not for a role whose tools record inside its engine)",
    )  # fmt: skip
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="override an option of a tool or engine, in YAML: contents=[cpu,stack]; if several "
        "have it, name one: torch.contents=[cpu]",
    )
    parser.add_argument(
        "--cancel",
        nargs="?",
        const="",
        metavar="REQUEST",
        help="take a request back: targets that have begun it record all of it, the others nothing "
        "(default: every request that no target has begun)",
    )
    parser.add_argument("--no-wait", action="store_true", help="ask and return at once")
    parser.add_argument(
        "--timeout",
        type=duration,
        default=3600.0,
        metavar="S",
        help="wait for at most S seconds (default: 3600)",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Ask, then follow the answers; or take requests back."""
    recorded = the_live_run(youngest(LATEST) if args.path == LATEST else named(args.path))
    if args.cancel is not None:
        return cancel(recorded, args.cancel)
    config = load_config(recorded.config)  # which `run.json` keeps
    asked = requests(args, recorded, config)
    recorded, late = joined(recorded, asked, 0 if args.no_wait else min(args.timeout, _JOIN_S))
    expected = sum(len(meant(recorded, one, config)) for one in asked)
    control.write(recorded.path, *asked)
    what = "the next 1 step" if args.next == 1 else f"the next {args.next} steps"
    if args.at:
        what = f"step {args.at}" if args.next == 1 else f"{args.next} steps from step {args.at}"
    roles = ", ".join(one.role for one in asked)
    print(f"request {asked[0].id}: {what} of {roles}", flush=True)
    for line in once((one, "has not opened the run, so it is not asked") for one in late):
        print(f"  {line}", flush=True)
    if expected > 1 and not args.at and not recorded.attached:  # a driver begins all at once
        newest = newest_step(recorded)
        now = f" (now: step {newest[0]})" if newest else ""
        print(f"  each begins with its own next step; for the same steps of all: --at STEP{now}")
    if args.no_wait:
        print(f"see the outcome with: rlprof ls {recorded.path}")
        return int(bool(late))
    try:
        code = follow(recorded.path, [one.id for one in asked], expected, args.timeout)
        return max(code, bool(late))
    except KeyboardInterrupt:
        print(f"\nno longer waiting; {stands(recorded.path, asked[0].id)}")
        return 130
