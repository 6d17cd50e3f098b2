"""Why less was recorded in a session than was asked for."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlprof.config import Config
    from rlprof.schedule import Steps
    from rlprof.session._track import Track

_CALL = "call prof.steps(...) or prof.step(...)"


def lacking(config: Config, tracks: Sequence[Track], *, outside: bool) -> list[str]:
    """Say why less was recorded than *config* asks for; *outside*: phases came without a step."""
    reasons = [_shortfall(tracks, outside=outside)]
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
    first, last = min(first, last), max(first, last)
    seen = f"steps {first}-{last}" if first < last else f"step {first}"
    return f"the config asks for {_words(asked)}; this process went through {seen}"


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
