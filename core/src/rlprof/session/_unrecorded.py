"""Why less was recorded in a session than was asked for."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from rlprof.schedule import Steps

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlprof.config import Config
    from rlprof.session._track import Track

_NAMED = 5
"""Chosen stretches of steps that are named."""
_CALL = "call prof.steps(...) or prof.step(...)"


def lacking(config: Config, tracks: Sequence[Track], *, outside: bool) -> list[str]:
    """Say why less was recorded than *config* asks for; *outside*: phases came without a step."""
    reasons = [_shortfall(tracks, outside=outside)]
    if not reasons[0] and _speaks(config, tracks):
        reasons.append(_missed(tracks))
    if len(tracks) and tracks[0].target.world_size == 1:  # else others may hold what is chosen
        reasons += _unheld(config, tracks)
    return [reason for reason in reasons if reason]


def _shortfall(tracks: Sequence[Track], *, outside: bool) -> str:
    """Say why no chosen step came; empty if one did, or none was asked for.

    *outside*: phases were entered, and no step ever began.
    """
    own = [track for track in tracks if track.own.steps]
    if outside and (own or any(track.waiting for track in tracks)):
        return f"phases were entered outside any step; {_CALL}"
    if not own or any(track.reached for track in own):
        return ""
    asked, first, last = own[0].own.steps, own[0].first_step, own[0].last_step
    if first is None or last is None:
        return f"the config asks for {_words(asked)}; no step began, {_CALL}"
    if any(chosen.stop == sys.maxsize for chosen in asked.ranges):
        return ""  # a rule without end: the run was over before its first step
    return f"the config asks for {_words(asked)}; {_seen(own)}"


def _speaks(config: Config, tracks: Sequence[Track]) -> bool:
    """Whether this is the first of the ranks that go through the same steps."""
    role = config.roles.get(tracks[0].target.role) if tracks else None
    ranks = None if role is None else role.ranks
    return len(tracks) > 0 and tracks[0].target.rank == min(ranks or (0,))


def _missed(tracks: Sequence[Track]) -> str:
    """Name the chosen steps that were still to come; empty if a stretch was only cut short."""
    own = [track for track in tracks if track.own.steps and track.highest_step >= 0]
    if not any(track.reached for track in own):
        return ""
    highest = max(track.highest_step for track in own)
    found = {
        (chosen.start, chosen.stop): chosen
        for track in own
        for chosen in track.own.steps.ranges
        if highest < chosen.start and chosen.stop < sys.maxsize
    }
    if not found:
        return ""
    few = Steps(tuple(found[key] for key in sorted(found)[:_NAMED]))
    more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    return f"the config also asks for {_words(few)}{more}; {_seen(own)}"


def _seen(own: Sequence[Track]) -> str:
    begun = [step for one in own for step in (one.first_step, one.last_step) if step is not None]
    first, last = min(begun), max(one.highest_step for one in own)
    through = f"steps {first}-{last}" if first < last else f"step {first}"
    return f"this process went through {through}"


def _unheld(config: Config, tracks: Sequence[Track]) -> list[str]:
    """Name the roles without a recorded engine, although some were attached."""
    found = []
    for name, role in config.roles.items():
        held = sorted({rank for one in tracks if one.link for rank in one.ranks
                       if one.target.role == name})  # fmt: skip
        if held and not any(role.includes(rank) for rank in held):
            asked = ", ".join(map(str, role.ranks or ()))
            there = ", ".join(map(str, held))
            found.append(
                f"roles.{name}.ranks: {asked} is chosen, and no engine that was attached holds it "
                f"(they hold {there})"
            )
    return found


def _words(asked: Steps) -> str:
    text = str(asked)
    if text.endswith("-") and text[:-1].isdecimal():
        return f"every step from {text[:-1]}"
    return f"step {text}" if text.isdecimal() else f"steps {text}"
