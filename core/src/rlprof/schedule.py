"""When to record: turns steps and phases into windows. Pure: no clock, no I/O."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from operator import index
from typing import Any, Literal

import attrs

from rlprof.errors import closest, shown
from rlprof.types import Window

Mode = Literal["discrete", "continuous"]

_FOREVER = sys.maxsize
LAST_STEP = 10**18 - 1
"""The last step that can be named."""


def step_number(step: Any) -> int:
    """Return *step* as a number; raise ValueError if it is not one, or is out of range."""
    try:
        number = index(step)
    except TypeError:
        raise ValueError(f"expected a whole number, got {shown(step)}") from None
    if not 0 <= number <= LAST_STEP:
        raise ValueError(f"expected 0 to {LAST_STEP}, got {shown(step)}")
    return number


@attrs.frozen
class Steps:
    """The chosen steps, as ranges of the trainer's numbers."""

    ranges: tuple[range, ...] = ()

    def __contains__(self, step: int) -> bool:
        for chosen in self.ranges:  # noqa: SIM110 -- asked at each phase
            if step in chosen:
                return True
        return False

    def __bool__(self) -> bool:
        return any(self.ranges)

    def __str__(self) -> str:
        return ", ".join(_show(chosen) for chosen in self.ranges) or "none"

    def as_data(self) -> Any:
        """Write it as a config does."""
        for chosen in self.ranges:
            if chosen.step != 1 or chosen.stop >= _FOREVER:
                last = None if chosen.stop >= _FOREVER else chosen[-1]
                return {"every": chosen.step, "first": chosen.start, "last": last}
        return [
            chosen.start if len(chosen) == 1 else f"{chosen.start}-{chosen[-1]}"
            for chosen in self.ranges
        ] or "none"

    def stretch_end(self, step: int) -> int:
        """Return the first step after *step* that is not chosen."""
        return next((one.stop for one in self.ranges if step in one and one.step == 1), step + 1)


def _show(chosen: range) -> str:
    last = "" if chosen.stop >= _FOREVER else str(chosen[-1])
    if chosen.step != 1:
        return f"every {chosen.step} from {chosen.start}" + (f" to {last}" if last else "")
    return str(chosen.start) if len(chosen) == 1 else f"{chosen.start}-{last}"


def parse_steps(value: Any) -> Steps:
    """Read `steps` of a config; raise ValueError that says what was expected.

    `[2, 5]`, `"2-4"` (4 included), a list of both, `{every: 100, first: 2, last: 1000}`, `none`.
    """
    if value is None or (type(value) is str and value == "none"):
        return Steps()
    if isinstance(value, Mapping):
        return Steps((_every(value),))
    items = value if isinstance(value, (list, tuple)) else [value]
    ranges: list[range] = []
    found = [_item(item) for item in items]
    chosen = [one for one in found if one is not None]
    wrong = [shown(item) for item, one in zip(items, found, strict=True) if one is None]
    faults = [f"{_FORMS}, got {', '.join(wrong)}{_meant(value)}"] if wrong else []
    faults += [f"'{a}-{b}' ends before it begins; write '{b}-{a}'" for a, b in chosen if b < a]
    if faults:
        raise ValueError("; ".join(faults))
    for first, last in sorted(chosen):
        if ranges and first <= ranges[-1].stop:  # overlapping or adjoining: one stretch
            ranges[-1] = range(ranges[-1].start, max(ranges[-1].stop, last + 1))
        else:
            ranges.append(range(first, last + 1))
    return Steps(tuple(ranges))


_FORMS = "expected a list like [2, 5], a range like '2-4', {every: 100, first: 2} or none"
_RANGE = re.compile(r"\s*(\d{1,18})\s*-\s*(\d{1,18})\s*", re.ASCII)


def _item(item: Any) -> tuple[int, int] | None:
    if type(item) is int and 0 <= item <= LAST_STEP:
        return item, item
    found = _RANGE.fullmatch(item) if type(item) is str else None
    return (int(found[1]), int(found[2])) if found else None


def _meant(value: Any) -> str:
    """Suggest how to write a text that is nearly a choice of steps."""
    words = [word.strip() for word in value.split(",")] if type(value) is str else []
    is_list = len(words) > 1 and all(one.isdecimal() or _RANGE.fullmatch(one) for one in words)
    meant = f"[{', '.join(words)}]" if is_list else "{every: 1}" * (words == ["all"])
    return f"; did you mean {meant}?" if meant else ""


def _every(value: Mapping[str, Any]) -> range:
    for key in value:
        if key not in {"every", "first", "last"}:
            raise ValueError(f"unknown key {shown(key)}; a rule has every, first, last")
    if "every" not in value:
        raise ValueError("every is missing; a rule has every, first, last: {every: 100, first: 2}")
    every, first, last = value.get("every"), value.get("first", 0), value.get("last")
    for name, number, least in (("every", every, 1), ("first", first, 0), ("last", last, 0)):
        if type(number) is not int and not (name == "last" and number is None):
            raise ValueError(f"{name}: expected a whole number, got {shown(number)}")
        if number is not None and not least <= number <= LAST_STEP:
            bound = f"at least {least}" if number < least else f"at most {LAST_STEP}"
            raise ValueError(f"{name}: expected {bound}, got {shown(number)}")
    chosen = range(first, _FOREVER if last is None else last + 1, every)  # type: ignore[arg-type]
    if not chosen:
        raise ValueError(f"last {last} lies before first {first}; no step is chosen")
    return chosen


@attrs.frozen
class Schedule:
    """When one role records: its steps, its mode, its phases."""

    steps: Steps = Steps()
    mode: Mode = "discrete"
    phases: tuple[str, ...] | None = None
    """None: all of them. If chosen phases nest, the outermost is the window."""
    join_steps: bool = False
    """Continuous mode: one window for consecutive steps, not one for each."""

    def at_step(self, step: int) -> Window | None:
        """Return the window that opens as *step* begins, given that none is open."""
        if self.mode != "continuous" or step not in self.steps:
            return None
        return Window(step, self.steps.stretch_end(step) if self.join_steps else step + 1)

    def at_phase(self, step: int | None, phase: str, occurrence: int) -> Window | None:
        """Return the window that opens as *phase* begins, given that none is open."""
        if self.mode != "discrete" or step is None or step not in self.steps:
            return None
        if self.phases is not None and phase not in self.phases:
            return None
        return Window(step, step + 1, phase, occurrence)

    def why_unrecorded(self, phases: Iterable[str], *, still_open: str, is_new: bool) -> str:
        """Say why nothing was recorded of a chosen step, by the *phases* entered.

        *still_open* is a window that has not ended; *is_new*: no step has begun since the target
        was added.
        """
        if still_open:
            return f"the window {still_open} was still open"
        if is_new:
            return "it was attached after the step had begun"
        if self.mode == "continuous":
            return "its window could not be opened"
        wanted, entered = self.phases, set(phases)
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


@attrs.frozen
class Demand:
    """A request to a live run: record the next *count* steps that nothing else records."""

    id: str
    count: int
    mode: Mode = "discrete"
    phases: tuple[str, ...] | None = None
    first: int = 0
    """No step before this one."""
    ranks: tuple[int, ...] | None = None
    """Global ranks; None: all of them."""

    def schedule(self, step: int) -> Schedule:
        """Return the schedule of *step*, which it rules."""
        return Schedule(Steps((range(step, step + 1),)), self.mode, self.phases)
