"""Why nothing was recorded of a step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlprof.errors import closest

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rlprof.schedule import Schedule


def why_unrecorded(rule: Schedule, phases: Iterable[str], *, still_open: str, is_new: bool) -> str:
    """Say why nothing was recorded of a step that *rule* chooses, by the *phases* entered.

    *still_open* is a window that has not ended; *is_new*: no step has begun since the target was
    added.
    """
    if still_open:
        return f"the window {still_open} was still open"
    if is_new:
        return "it was attached after the step had begun"
    if rule.mode == "continuous":
        return "its window could not be opened"
    wanted, entered = rule.phases, set(phases)
    if entered and (wanted is None or entered & set(wanted)):
        return "its phases began while another window was open or ended"
    if wanted is None:
        return (
            "the step entered no phase, and discrete mode records phases; mark them with "
            "prof.phase(...), or set mode: continuous"
        )
    seen = ", ".join(sorted(entered)) or "none"
    hint = closest(wanted[0], entered) if len(wanted) == 1 else ""
    return f"the step has no phase {' or '.join(wanted)}; it has: {seen}{hint}"
