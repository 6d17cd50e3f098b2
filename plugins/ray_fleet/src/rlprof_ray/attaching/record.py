"""Records a live run: a fleet of actors that others made, detached after N steps."""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING, Any

import rlprof
from rlprof.config import Limits
from rlprof.errors import RlprofError
from rlprof_ray._fleet import Fleet

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from rlprof_ray.attaching.edges import Edges
    from rlprof_ray.attaching.found import Member

_LOOK_S = 0.5
_START_S = 30
"""A trainer may be at work when a step begins; only this process waits for it."""


def config_of(
    found: Sequence[Member], base: Mapping[str, Any], ranks: Any, timeout_s: float
) -> dict[str, Any]:
    """Return the config of the run: *base*, with each step as one window of each member.

    *ranks* are those of the trainers; a role with none of them is not recorded. Without a tool,
    there are no windows, and an engine is an actor like others.
    """
    worlds = Counter(one.role for one in found if not one.kind.engine)
    if worlds and ranks != "all" and max(ranks) >= max(worlds.values()):
        last = max(worlds.values()) - 1
        raise RlprofError(f"--rank: {max(ranks)} does not exist; the last rank here is {last}")
    roles: dict[str, Any] = {}
    for one in found:
        world = worlds[one.role]
        own = ranks if ranks == "all" else [rank for rank in ranks if rank < world]
        if one.kind.engine:
            engine = {"engine": one.engine} if base["tool"] else {}
            roles[one.role] = {"ranks": "all", **engine}
        elif own:
            roles[one.role] = {"ranks": own}
    limits = {"start_timeout_s": _START_S, "configure_timeout_s": min(timeout_s, 3600)}
    steps = {"every": 1, "first": 0} if base["tool"] else "none"
    return {
        **base, "roles": roles, "mode": "continuous", "steps": steps,
        "limits": {**limits, **base.get("limits", {})},
    }  # fmt: skip


def record(
    config: Mapping[str, Any], found: Sequence[Member], steps: tuple[Edges, int],
    timeout_s: float, report: Callable[[str], None],
) -> Path:  # fmt: skip
    """Record upcoming steps of *found*; return the run folder."""
    given: dict[str, list[Any]] = {}
    for one in sorted(found, key=lambda one: not one.kind.engine):  # engines do not wait: first
        is_engine = one.kind.engine and config["tool"]
        given.setdefault(one.role, []).append(one.replica if is_engine else one.handle)
    (edges, count), begun = steps, 0
    gone: tuple[tuple[str, str], ...] = ()
    with Fleet(config) as fleet:
        fleet.name_calls()
        report("attaching; working actors join between two of their calls")
        fleet.attach(**given)
        edges.forget()
        try:
            report("waiting for the next step")
            for step in fleet.steps(_numbers(edges, count, timeout_s, report)):
                doing = "recording" if config["tool"] else "watching"
                gone, before = fleet.gone, gone
                for name, why in (one for one in gone if one not in before):
                    report(f"{name}: {why}; the others go on")
                left = len(found) - len(gone)
                report(f"step {step}: {doing} {left} actor{'s' if left != 1 else ''}")
                begun += 1
        except RlprofError:
            if begun:
                what = "ls" if config["tool"] else "why"
                report(f"look at the steps so far with: rlprof {what} {fleet.run_dir}")
            raise
        finally:
            _wait_for_exports(fleet.run_dir, report)
        report("detaching")
    run_dir: Path = fleet.run_dir
    return run_dir


def _numbers(
    edges: Edges, count: int, timeout_s: float, report: Callable[[str], None]
) -> Iterator[int]:
    step = edges.next(time.monotonic() + timeout_s)
    for _ in range(count):
        yield step
        last, step = step, edges.next(time.monotonic() + timeout_s)  # it ends the last
        if step > last + 1:
            report(f"step {last} holds steps {last} to {step - 1}: their ends were seen at once")


def _wait_for_exports(run_dir: Any, report: Callable[[str], None]) -> None:
    """Wait until all is on disk: a member that closes its session earlier delays training."""
    last = -1
    until = time.monotonic() + Limits().export_timeout_s
    while time.monotonic() < until:
        run = rlprof.read(run_dir)
        left = [one for one in run.captures if one.state in ("recording", "exporting")]
        if not left:
            return
        there = len(run.captures) - len(left)
        if there != last:
            report(f"writing: {there} of {len(run.captures)} captures are there")
            last = there
        time.sleep(_LOOK_S)
