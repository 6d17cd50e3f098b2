"""verl's marks around a trajectory and around what it calls, as spans where a session is open."""

from __future__ import annotations

import contextlib
import functools
from collections import Counter
from typing import TYPE_CHECKING, Any

import rlprof

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def note(module: Any) -> None:
    """Have both marks of `verl.utils.rollout_trace` note spans, besides what they do.

    They keep verl's names, so that a user's function that uses one is still sent by reference:
    by value, a mark takes verl's context variables along, and no process can be sent those.
    """
    about, around = module.rollout_trace_attr, module.rollout_trace_op
    names = _Names()

    @functools.wraps(about)
    @contextlib.contextmanager
    def rollout_trace_attr(*args: Any, **kwargs: Any) -> Iterator[None]:
        with (
            names.name(_place(*args, **kwargs)) as name,
            about(*args, **kwargs),
            rlprof.trajectory(name),
        ):
            yield

    @functools.wraps(around)
    def rollout_trace_op(function: Callable[..., Any]) -> Callable[..., Any]:
        wrapped: Callable[..., Any] = around(function)
        return rlprof.annotate(function.__qualname__, span=True)(wrapped)

    module.rollout_trace_attr, module.rollout_trace_op = rollout_trace_attr, rollout_trace_op


class _Names:
    """Names trajectories: the V1 trainer says of all rollouts of a prompt that they are the first.

    They run at the same time in one process.
    """

    def __init__(self) -> None:
        self._begun: dict[str, int] = {}
        self._open: Counter[str] = Counter()

    @contextlib.contextmanager
    def name(self, place: tuple[Any, ...]) -> Iterator[str]:
        """Number the rollout if others with its number are open."""
        *rest, rollout = place
        key = "-".join(str(one) for one in place if one is not None)
        number = self._begun.get(key, 0)
        self._begun[key] = number + 1
        self._open[key] += 1
        try:
            told = [*rest, rollout + number] if isinstance(rollout, int) else place
            yield "-".join(str(one) for one in told if one is not None)
        finally:
            self._open[key] -= 1
            if not self._open[key]:
                del self._open[key], self._begun[key]


def note_rewards(module: Any) -> None:
    """Have a reward that an agent loop computes be a span `reward` of its trajectory."""
    own = module.AgentLoopWorker._compute_score  # noqa: SLF001 -- where verl waits for it
    module.AgentLoopWorker._compute_score = rlprof.annotate("reward", span=True)(own)  # noqa: SLF001


def _place(
    sample_index: Any = None,
    step: Any = None,
    rollout_n: Any = None,
    *_: Any,
    validate: bool = False,
    **__: Any,
) -> tuple[Any, ...]:
    """Say which trajectory it is: of which step, which sample, which of its rollouts."""
    return "validate" if validate else None, step, sample_index, rollout_n
