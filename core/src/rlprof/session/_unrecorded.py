"""Why less was recorded in a session than was asked for."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from rlprof.errors import closest, one_line
from rlprof.schedule import Steps

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlprof.config import Config
    from rlprof.session._track import Track
    from rlprof.types import Target

_NAMED = 5
"""Chosen stretches of steps that are named."""
_CALL = "call prof.steps(...) or prof.step(...)"


def ended_with(exc: BaseException, tracks: Sequence[Track], *, is_in_step: bool) -> str:
    """Say which exception ended training, and in or after which step."""
    step, what = tracks[0].last_step if tracks else None, type(exc).__name__
    at = "" if step is None else f" {'in' if is_in_step else 'after'} step {step}"
    try:
        what = one_line(f"{what}: {exc}").rstrip(":")
    except Exception:  # noqa: BLE001 -- of training's exception
        what = one_line(what)
    return f"training ended{at} with {what}"


def lacking(
    config: Config, tracks: Sequence[Track], entered: set[str], *, outside: bool
) -> list[str]:
    """Say why less was recorded than *config* asks for.

    *entered* are the phases of steps to record; *outside*: phases came without a step.
    """
    own = [track for track in tracks if track.own.steps]
    if outside and (own or any(track.waiting for track in tracks)):
        reasons = [f"phases were entered outside any step; {_CALL}"]
    else:
        reasons = _shortfall(config, own) + _absent(config, own, entered) if own else []
    if tracks and tracks[0].target.world_size == 1:  # else others may hold what is chosen
        reasons += _unheld(config, tracks)
    return reasons


def _shortfall(config: Config, own: Sequence[Track]) -> list[str]:
    """Name the chosen steps that did not come; but not a stretch that was only cut short."""
    begun = [track for track in own if track.first_step is not None]
    if not begun:
        return [f"the config asks for {_words(own[0].own.steps)}; no step began, {_CALL}"]
    highest, reached = max(track.highest_step for track in begun), any(one.reached for one in own)
    missed = {
        (chosen.start, chosen.stop): chosen
        for track in own
        for chosen in track.own.steps.ranges  # a rule without end: the run ended before its first
        if chosen.stop < sys.maxsize and (highest < chosen.start or not reached)
    }
    if not missed or (reached and not _speaks(config, own[0].target)):
        return []
    few = Steps(tuple(missed[key] for key in sorted(missed)[:_NAMED]))
    more = f" and {len(missed) - _NAMED} more" if len(missed) > _NAMED else ""
    first = min(track.first_step or 0 for track in begun)
    through = f"steps {first}-{highest}" if first < highest else f"step {first}"
    asks = "the config also asks for" if reached else "the config asks for"
    return [f"{asks} {_words(few)}{more}; this process went through {through}"]


def _absent(config: Config, own: Sequence[Track], entered: set[str]) -> list[str]:
    """Name chosen phases that no step to record had; if it had none of them, it was skipped."""
    return [
        f"roles.{track.target.role}.phases: no step to record had {phase}{closest(phase, entered)}"
        for track in own
        for phase in sorted({*(track.own.phases or ())} - entered)
        if entered.intersection(track.own.phases or ()) and _speaks(config, track.target)
    ]


def _speaks(config: Config, target: Target) -> bool:
    """Whether *target* is the first that the config chooses of its role: it speaks for all."""
    role = config.roles.get(target.role)
    return target.rank == min((role and role.ranks) or (0,))


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
