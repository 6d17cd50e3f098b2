"""Why nothing was recorded of a step that the config asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    from rlprof.schedule import Schedule


def unrecorded(rule: Schedule, entered: AbstractSet[str], *, is_new: bool) -> str:
    """Say why nothing of a step that *rule* chooses was recorded, by the phases *entered*.

    *is_new*: no step has begun since the target is known.
    """
    if is_new:
        return "it was attached after the step had begun"
    if rule.mode == "continuous":
        return "its window could not be opened"
    wanted = rule.phases
    if entered and (wanted is None or entered & set(wanted)):
        return "its phases began while another window was open or ended"
    if wanted is None:
        return (
            "the step entered no phase, and discrete mode records phases; mark them with "
            "prof.phase(...), or set mode: continuous"
        )
    seen = ", ".join(sorted(entered)) or "none"
    return f"the step entered none of {', '.join(wanted)}; it entered: {seen}"
