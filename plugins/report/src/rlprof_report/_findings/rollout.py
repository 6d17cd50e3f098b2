"""Why the rollout of one step ends late."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rlprof_report._figures.slow import slow_of
from rlprof_report._findings.facts import MARGIN, Measure
from rlprof_report._plain import secs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rlprof_report._findings.facts import Context, Facts
    from rlprof_report.values.step import Blocked, Rollout


def rollout_of(facts: Facts, context: Context) -> Iterator[Measure]:
    """Tell apart why the rollout ends late: tools, rewards, one replica, long trajectories."""
    rollout = facts.step.rollout
    if rollout is None or not rollout.phase or rollout.trajectories < 4:
        return
    blocked = rollout.blocked
    if blocked is not None:
        yield _blocked(blocked, context)
    tail, tools = rollout.tail_s[f"{rollout.late_share:g}"], rollout.tools_gain_s
    tool = _tool(facts, rollout)
    if tool is not None:
        yield tool
    rewards = rollout.rewards_gain_s
    if rewards > 0:
        yield Measure(
            "reward",
            rewards,
            "",
            f"The rollout waits {secs(rewards)} for rewards.",
            ("That is how much earlier it would end if rewards took no time.",),
            (f"reward in {rollout.phase}",),
        )
    uneven = _uneven(facts, context)
    if uneven is not None:
        yield uneven
    is_explained = max(tools, rewards) >= tail / 2 or (
        uneven is not None and uneven.seconds >= 0.7 * tail
    )
    if rollout.late is not None and not is_explained:
        late, half, most = rollout.late, rollout.trajectory_s["p50"], rollout.trajectory_s["max"]
        reasons = {
            f"they write {late.tokens_ratio:.1f} times as many tokens": late.tokens_ratio >= 1.5,
            f"they spend {secs(late.requests_s)} more in requests": late.requests_s >= tail / 2,
            f"they spend {secs(late.tools_s)} more in tools": late.tools_s >= tail / 2,
            f"they spend {secs(late.other_s)} more outside requests and tools": (
                rollout.requests > 0 and late.other_s >= tail / 2
            ),
        }
        why = next((reason for reason, is_one in reasons.items() if is_one), "the cause is unclear")
        yield Measure(
            "tail",
            tail,
            "",
            f"The last {100 * (1 - rollout.late_share):.0f} % of trajectories hold up the rollout "
            f"by {secs(tail)}; {why}.",
            (f"The median trajectory takes {secs(half)}, the longest {secs(most)}.",),
            tuple(f"trajectory {one}" for one in late.trajectories[:3]),
            "rollout",
            None,
            rollout.phase,
            bound_s=min(MARGIN * rollout.tail_bound_s, 2 * tail),
        )


def _tool(facts: Facts, rollout: Rollout) -> Measure | None:
    """Say in which tool some trajectories stall, or else how long all are in the largest."""
    is_stall = rollout.tools_gain_s > rollout.tool_gain_s / 2
    seconds = rollout.tools_gain_s if is_stall else rollout.tool_gain_s
    name = rollout.stalls_in if is_stall else next(iter(rollout.tools_by_name), "")
    blocked = rollout.blocked
    if seconds <= 0 or (blocked and blocked.tool == name and blocked.seconds >= seconds):
        return None
    if not is_stall:
        return Measure(
            "tools",
            seconds,
            name,
            f"The rollout waits {secs(seconds)} for the tool `{name}`.",
            ("That is how much earlier it would end if this tool took no time.",),
            (f"tool `{name}` in {rollout.phase}",),
        )
    spent = (
        f"In step {facts.step.step} they are {rollout.stalls} of {rollout.trajectories}; the "
        f"last to end spends {secs(rollout.tools_longest_s)} in tools, the median one "
        f"{secs(rollout.tools_median_s)}."
    )
    return Measure(
        "tool",
        seconds,
        name,
        f"Trajectories that stall in the tool `{name}` hold up the rollout by {secs(seconds)}.",
        (spent,),
        (f"trajectory {rollout.longest}",),
    )


def _blocked(blocked: Blocked, context: Context) -> Measure:
    who, is_tool = context.name(blocked.process), blocked.name == "tool_call"
    what = f"the tool `{blocked.tool}`" if is_tool else "the reward"
    times = f"{blocked.calls} times" if blocked.calls > 1 else "once"
    why = "Its calls run one at a time: await them, or use threads, as asyncio.to_thread does."
    if blocked.is_one:
        why = "Not all of its calls do so: look for any code of that thread that does not await."
    return Measure(
        "blocked",
        blocked.seconds,
        blocked.tool,
        f"No other trajectory of {who} goes on while {what} runs: {secs(blocked.seconds)}, "
        f"{times}.",
        (why,),
        (f"{what} on {who}",),
    )


def _uneven(facts: Facts, context: Context) -> Measure | None:
    """Say which replica ends last, or those of which host, if most of its trajectories do."""
    rollout = facts.step.rollout
    if rollout is None or len(rollout.replicas) < 2:
        return None
    last = max(rollout.replicas, key=lambda one: one.end_s)
    hosts = [context.replica_hosts.get(one.name, "") for one in rollout.replicas]
    places, host = slow_of([one.end_s for one in rollout.replicas], hosts)
    # Several of many hosts are late by chance: each has long trajectories of its own.
    slow = [rollout.replicas[place].name for place in places] if host else [last.name]
    others = [one for one in rollout.replicas if one.name not in slow]
    behind = last.end_s - float(np.median([one.end_s for one in others]))
    bulk = last.end90_s - float(np.median([one.end90_s for one in others]))
    if behind <= 0 or bulk < behind / 2:
        return None
    even_s = rollout.even_gain_s
    requests = float(np.median([one.requests for one in others]))
    slots = float(np.median([one.slots for one in others]))
    whose = "the others" if len(others) > 1 else f"replica {others[0].name}"
    who, ends, it, they = f"replica {last.name}", "ends", "it", "it is"
    if len(slow) > 1:
        who, ends, they = f"the {len(slow)} replicas on {host}", "end", "they are"
        it = f"replica {last.name}"
    tokens = float(np.median([one.tokens for one in others]))
    if last.requests > 1.15 * requests:
        why = f"{it} serves {last.requests} requests, {whose} {requests:.0f}"
    elif last.tokens > 1.5 * tokens > 0:
        why = f"{it} writes {last.tokens / tokens:.1f} times as many tokens"
    elif last.slots < 0.85 * slots:
        why = f"{it} runs {last.slots} requests at once, {whose} {slots:.0f}"
    else:
        why = ""
    return Measure(
        "replica",
        behind,
        who,
        f"{who[0].upper()}{who[1:]} {ends} {secs(behind)} after {whose}; "
        f"{why or f'{they} slower with as many requests'}.",
        (f"Moving requests alone, so that all end together, saves about {secs(even_s)}.",),
        (f"replica {last.name}",),
        "rollout",
        int(last.name) if last.name.isdecimal() and len(last.name) < 7 else None,
        rollout.phase,
        is_by_chance=not why,
    )
