"""A replaced standard test needs a reason; without one the kit fails."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

F = TypeVar("F", bound="Callable[..., Any]")

_REASON = "_rlprof_overrides"


def overrides(reason: str) -> Callable[[F], F]:
    """Mark a test that replaces a standard one, with the reason: `@overrides("needs a GPU")`."""
    if not isinstance(reason, str) or not reason.strip():
        raise TypeError('overrides: say why, as in @overrides("the engine cannot be killed alone")')

    def mark(test: F) -> F:
        setattr(test, _REASON, reason)
        return test

    return mark


def silent_overrides(cls: type) -> list[str]:
    """Return the standard tests that *cls* replaces or removes without a reason."""
    own = [base for base in cls.__mro__ if not base.__module__.startswith("rlprof_testing")]
    kit = [base for base in cls.__mro__ if base.__module__.startswith("rlprof_testing")]
    standard = {name for base in kit for name in vars(base) if name.startswith("test_")}
    return sorted(
        name
        for name in standard
        for base in own
        if name in vars(base) and not _has_reason(vars(base)[name])
    )


def _has_reason(test: Any) -> bool:
    if getattr(test, _REASON, ""):
        return True
    marks = getattr(test, "pytestmark", [])
    return any(mark.name == "xfail" and mark.kwargs.get("reason") for mark in marks)
