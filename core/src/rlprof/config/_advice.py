"""What a plugin would have a user know before the run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

from rlprof.answers import Advice
from rlprof.contract import Kind, hooks
from rlprof.errors import CaptureError, one_line, raised, shown

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from rlprof.config._values import Limits


def advice_of(
    kind: Kind,
    plugin: type[Any],
    options: Any,
    limits: Limits,
    tools: Mapping[str, Mapping[str, Any]],
    *,
    asked: Collection[str] = (),
    on_host: bool = False,
) -> tuple[Advice, ...]:
    """Ask *plugin*. A fault about an option that is not *asked* for is a warning."""
    try:
        made = hooks(kind, plugin())
        found = made.advise(options=options, limits=limits, tools=tools, on_host=on_host)
        return tuple(_judged(one, asked) for one in found or ())
    except CaptureError as exc:
        said = one_line(exc)
    except (Exception, SystemExit) as exc:  # a stranger's code, and words only
        said = f"advise raised {raised(exc)}"
    return (Advice(said, level="warning"),)


def _judged(one: Any, asked: Collection[str]) -> Advice:
    if not isinstance(one, Advice):
        raise TypeError(f"it must return a list of rlprof.Advice, got {shown(one)} in it")
    is_default = one.about not in ("", *asked)
    if one.level == "fault" and is_default:
        return attrs.evolve(one, level="warning")
    return one
