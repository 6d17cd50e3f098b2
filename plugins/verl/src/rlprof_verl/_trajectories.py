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
    """Have marks of trajectories note spans; a reward that an agent loop computes is one, too."""
    if hasattr(module, "AgentLoopWorker"):
        own = module.AgentLoopWorker._compute_score  # noqa: SLF001 -- where verl waits for it
        noted = rlprof.annotate("reward", span=True)(own)
        module.AgentLoopWorker._compute_score = noted  # noqa: SLF001
    else:
        _note_marks(module)


def _note_marks(module: Any) -> None:
    """Have both marks of `verl.utils.rollout_trace` note spans, besides what they do.

    They keep verl's names, so that a user's function that uses one is still sent by reference:
    by value, a mark takes verl's context variables along, and no process can be sent those.
    """
    about, around = module.rollout_trace_attr, module.rollout_trace_op
    names = _Names()

    @functools.wraps(about)
    @contextlib.contextmanager
    def rollout_trace_attr(*args: Any, **kwargs: Any) -> Iterator[None]:
        with names.name(*args, **kwargs) as name, about(*args, **kwargs), rlprof.trajectory(name):
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
    def name(
        self, sample_index: Any = None, step: Any = None, rollout_n: Any = None, *_: Any,
        validate: bool = False, **__: Any,
    ) -> Iterator[str]:  # fmt: skip
        """Say which step, sample and rollout it is; number it if others of that name are open."""
        place = ["validate" if validate else None, step, sample_index]
        key = _joined(*place, rollout_n)
        number = self._begun.get(key, 0)
        self._begun[key] = number + 1
        self._open[key] += 1
        try:
            yield _joined(*place, rollout_n + number) if isinstance(rollout_n, int) else key
        finally:
            self._open[key] -= 1
            if not self._open[key]:
                del self._open[key], self._begun[key]


def _joined(*place: Any) -> str:
    return "-".join(str(one) for one in place if one is not None)
