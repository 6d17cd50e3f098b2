"""What trajectories do while an asynchronous trainer waits for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlprof_report._figures.intervals import Interval
    from rlprof_report._spans.rows import Words

_MOST = 0.5
"""The least share of their time that is worth a word."""
_FEW = 0.25
"""So few of the trajectories of a step run on average while the trainer waits for the last ones."""


def held_by(waits: Sequence[Interval], rows: np.ndarray, words: Words, count: int) -> str:
    """Say what the trajectories in *rows* do during *waits*, of *count* in a step; empty: unclear.

    *rows* are all parts of trajectories that run during the step.
    """
    spent = np.zeros(len(rows))
    for start, end in waits:
        spent += np.maximum(0, np.minimum(rows["end"], end) - np.maximum(rows["start"], start))
    names = {
        name: rows["name"] == words.number(name) for name in ("trajectory", "tool_call", "reward")
    }
    whole = float(spent[names["trajectory"]].sum())
    if not whole:
        return ""
    tools = rows["tool"][names["tool_call"]]
    in_tool = {
        int(one): float(spent[names["tool_call"]][tools == one].sum()) for one in np.unique(tools)
    }
    most = max(in_tool, key=lambda one: in_tool[one], default=-1)
    if most >= 0 and in_tool[most] >= _MOST * whole:
        return f"they spend {in_tool[most] / whole:.0%} of that in the tool `{words[most]}`"
    rewards = float(spent[names["reward"]].sum()) / whole
    if rewards >= _MOST:
        return f"they spend {rewards:.0%} of that in rewards"
    running = whole / sum(end - start for start, end in waits)
    if count >= 4 and running <= _FEW * count:
        return f"on average {running:.1f} of {count} still run, so a few long ones hold up the rest"
    return ""
