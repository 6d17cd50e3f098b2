"""`rlprof attach`: record upcoming steps of a live run that was not started with rlprof."""

from __future__ import annotations

import argparse
import logging
import re
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

import rlprof
from rlprof.config import Limits, load_config
from rlprof.errors import RlprofError
from rlprof_ray._connect import connect
from rlprof_ray.attaching.edges import edges
from rlprof_ray.attaching.found import check, find
from rlprof_ray.attaching.frameworks import KINDS, Kind
from rlprof_ray.attaching.record import config_of, record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlprof_ray.attaching.found import Member

_TAKEN = ("run_dir", "scratch_dir", "tool", "tools", "engines", "limits", "spans", "counters")
"""The keys taken from a config file; roles and steps come from the live run."""
_WATCHED = 6
"""Steps to watch without a tool: `rlprof why` compares them."""
_REASONS = 3
"""Most reasons that the end names why captures are not whole; `rlprof ls` has all."""
_DESCRIPTION = """\
Find the trainers and rollout servers of a live run by the classes of their actors (verl, OpenRLHF,
NeMo-RL, SkyRL, slime), show them, ask, record upcoming steps of all of them, and detach. The run
needs no restart, no config and no change of its code; rlprof must be installed where its actors
run."""
_EXAMPLES = """\
examples:
  rlprof attach --steps 2                      on a node of the cluster
  rlprof attach --tool torch_memory --yes
  rlprof attach --tool none && rlprof why      which actor is slow
  rlprof attach --actors 'Trainer' --role actor --ends-step update \\
                --actors 'Server' --role rollout --engine llm
"""


class _Group(argparse.Action):
    """`--role` and `--engine` belong to the `--actors` before them."""

    def __call__(
        self, parser: argparse.ArgumentParser, args: argparse.Namespace, given: Any,
        option: str | None = None,
    ) -> None:  # fmt: skip
        kinds = args.kinds or []
        if self.dest == "actors":
            kinds = [*kinds, Kind("yours", given, "actor", is_users=True)]
        elif kinds:
            kinds[-1] = attrs.evolve(kinds[-1], **{self.dest: given})
        else:
            parser.error(f"{option} belongs to the --actors before it")
        args.kinds = kinds


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as exc:
        raise argparse.ArgumentTypeError(f"{text!r} is no regular expression: {exc}") from None
    return text


_OPTIONS: dict[str, dict[str, Any]] = {
    "--address": {"default": "auto", "metavar": "ADDRESS",
                  "help": "the cluster (default: %(default)s)"},
    "--job": {"metavar": "ID", "help": "the job, if several are live"},
    "--actors": {"action": _Group, "type": _pattern, "metavar": "REGEX",
                 "help": "actors of other classes, by name or class; may be repeated"},
    "--role": {"action": _Group, "metavar": "ROLE",
               "help": "the role of these actors (default: actor)"},
    "--engine": {"action": _Group, "metavar": "ATTRIBUTE",
                 "help": "the attribute of these actors that holds their engine (vLLM or SGLang)"},
    "--ends-step": {"type": _pattern, "metavar": "METHOD", "help": "the method of the trainers "
                    "that ends a step when it returns (a regular expression)"},
    "--steps": {"type": int, "metavar": "N",
                "help": "how many steps (default: 1; 6 with --tool none)"},
    "--rank": {"default": "all", "metavar": "RANKS",
               "help": "global ranks of the trainers: all, 3 or 0,7 (default: %(default)s)"},
    "--tool": {"action": "append", "metavar": "TOOL", "help": "record with this tool; may be "
               "repeated (default: as in --config, else torch); none: watch the calls, for "
               "`rlprof why`"},
    "--config": {"metavar": "FILE", "help": "use the tools, options and limits of this config"},
    "--run-dir": {"metavar": "DIR", "help": "make the run folder here (default: outputs/profile)"},
    "--timeout": {"type": float, "default": 3600.0, "metavar": "S",
                  "help": "wait for at most S seconds for each step (default: 3600)"},
    "--yes": {"action": "store_true", "help": "record without asking"},
}  # fmt: skip


def add(subparsers: Any) -> None:
    """Describe the command."""
    parser = subparsers.add_parser(
        "attach",
        help="record a live run on Ray that was not started with rlprof",
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    for option, more in _OPTIONS.items():
        parser.add_argument(option, **more)
    parser.set_defaults(run=run, kinds=None)


def run(args: argparse.Namespace) -> int:
    """Find, show, ask, record; return 0 if every capture is whole."""
    base = _base(args)
    count = (1 if base["tool"] else _WATCHED) if args.steps is None else args.steps
    if count < 1:
        raise RlprofError(f"--steps: expected at least 1, got {count}")
    logging.getLogger("rlprof").setLevel(logging.ERROR)  # this command says what happens
    _report(f"the cluster at {connect(args.address, 'attach')}")
    known = [one for one in KINDS if not (base["tool"] and one.is_only_watched)]
    found = find(args.kinds or known, args.job or "", args.timeout, _report)
    check(found, base["tool"])
    where = edges(found, args.ends_step or "")
    there = [one for one in found if not one.problem]
    _show(found)
    print(f"steps: {where.words}")
    if not args.yes:
        how = f"record {count} of its steps with {', '.join(base['tool'])}?"
        if not _agreed(how if base["tool"] else f"watch {count} of its steps?"):
            return 1
    config = config_of(there, base, _ranks(args.rank), args.timeout)
    folder = record(config, there, (where, count), args.timeout, _report)
    return _result(folder, base["tool"])


def _base(args: argparse.Namespace) -> dict[str, Any]:
    """Return the part of the config that the user chose."""
    base: dict[str, Any] = {"tool": ["torch"]}
    if args.config:
        given = load_config(args.config).as_data()
        base |= {key: given[key] for key in _TAKEN if key in given}
        usual = attrs.asdict(Limits())  # attach has its own defaults for some
        base["limits"] = {key: one for key, one in given["limits"].items() if one != usual[key]}
    if args.tool:
        base["tool"] = [] if args.tool == ["none"] else args.tool
    if args.run_dir:
        base["run_dir"] = args.run_dir
    base["run_dir"] = str(Path(base.get("run_dir", "outputs/profile")).absolute())
    return base


def _ranks(typed: str) -> Any:
    words = typed.split(",")
    if typed != "all" and not all(word.isdecimal() for word in words):
        raise RlprofError(f"--rank: expected all, 3 or 0,7, got {typed!r}")
    return typed if typed == "all" else [int(word) for word in words]


def _show(found: Sequence[Member]) -> None:
    rows = [("FRAMEWORK", "ROLE", "ACTOR", "HOST", "PID", "NOTE")]
    for one in found:
        note = one.problem or (f"engine {one.engine}" if one.engine else "")
        actor = one.actor
        rows.append((one.kind.framework, one.role, actor.label, actor.host, str(actor.pid), note))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(map(str.ljust, row, widths)).rstrip())


def _agreed(question: str) -> bool:
    if not sys.stdin.isatty():
        raise RlprofError("attach: there is no terminal to ask; add --yes to record")
    return input(f"{question} [y/N] ").strip().lower() in ("y", "yes")


def _result(folder: Path, tools: Sequence[str]) -> int:
    captures = rlprof.read(folder).captures
    whole = [one for one in captures if one.state == "whole"]
    if not tools:
        print(f"ask why steps are slow:\n  rlprof why {folder}")
    else:
        print(f"{len(whole)} of {len(captures)} captures are whole; see them with:")
        print(f"  rlprof ls {folder}\n  rlprof export {folder} --to timeline")
        reasons = Counter(one.notes[-1] for one in captures if one not in whole and one.notes)
        for why, count in reasons.most_common(_REASONS):
            print(f"{count} not whole: {why}")
    return 0 if len(whole) == len(captures) and (captures or not tools) else 1


def _report(words: str) -> None:
    print(f"rlprof: {words}", file=sys.stderr, flush=True)
