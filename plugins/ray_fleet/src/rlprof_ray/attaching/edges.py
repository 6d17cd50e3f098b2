"""Finds where the steps of a live run begin, from outside."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Any, TypeAlias

from rlprof.errors import RlprofError
from rlprof_ray._calls import Record
from rlprof_ray._member import aside
from rlprof_ray.attaching.actors import living

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlprof_ray.attaching.found import Member

_LOOK_S = 0.1
_RECORD_S = 0.5
_SHARE = 10
"""Reading a full record takes Ray seconds; the pause is this many times as long."""
_ANSWER_S = 60.0
_SHOWN = 8
"""Most methods that an error names, if none was called yet."""


class Version:
    """The weight version of the rollout servers: step n + 1 begins when all of them have n."""

    def __init__(self, members: Sequence[Member]) -> None:
        self._members = members
        self._last = self._now()
        first = members[0]
        self.words = f"{first.kind.version} of {first.actor.label}, which is {self._last}"
        """A description of the source, for the user."""

    def forget(self) -> None:
        """Take the current version as known."""
        self._last = self._now()

    def next(self, until: float) -> int:
        """Wait until the version changes."""
        while (now := self._now()) == self._last:
            _pause(_LOOK_S, until)
        self._last = now
        return now + 1

    def _now(self) -> int:
        import ray

        asked = [aside(one.handle, getattr, one.kind.version) for one in self._members]
        try:
            return min(map(int, ray.get(asked, timeout=_ANSWER_S)))
        except ray.exceptions.RayError as exc:
            raise RlprofError(f"attach: a rollout server is gone: {type(exc).__name__}") from exc


class Calls:
    """The ends of one method of a trainer, from Ray's record of calls."""

    def __init__(self, member: Member, ends_step: str) -> None:
        self._actor, self._ends_step = member.actor, ends_step
        self._record, self._count, self._pause_s = Record(), 0, _RECORD_S
        self.seen = sorted({_method(call.name) for call in self._news()})
        self.words = f"the ends of {ends_step} of {member.actor.label}; numbered from 1"

    def forget(self) -> None:
        """Take the calls that have ended as known."""
        self._news()

    def next(self, until: float) -> int:
        """Wait until Ray reports such calls: one or several, about a second after their ends."""
        while not (ended := self._ended()):
            _pause(self._pause_s, until)
        self._count += ended if self._count else 1
        return self._count

    def _ended(self) -> int:
        names = [_method(call.name) for call in self._news()]
        return sum(re.fullmatch(self._ends_step, name) is not None for name in names)

    def _news(self) -> list[Any]:
        began = time.monotonic()
        news = self._record.news({self._actor.id})
        if not news and self._actor.id not in {one.id for one in living()}:
            raise RlprofError(f"attach: {self._actor.label} has ended: no further step begins")
        self._pause_s = max(_RECORD_S, _SHARE * (time.monotonic() - began))
        return news


Edges: TypeAlias = Version | Calls
"""A source of steps."""


def edges(found: Sequence[Member], ends_step: str) -> Edges:
    """Return the source of the steps of a run; raise RlprofError if there is none."""
    there = [one for one in found if not one.problem]
    versions = [one for one in there if one.look is not None and one.look.version is not None]
    if versions and not ends_step:
        return Version(versions)
    trainer = next(
        (one for one in there if not (one.kind.engine or one.kind.is_only_watched)), None
    )
    if trainer is None:
        raise RlprofError("attach: no trainer is live, and only calls of a trainer show the steps")
    method, name = ends_step or trainer.kind.ends_step, trainer.actor.label
    calls = Calls(trainer, method or "nothing")
    seen = ", ".join(calls.seen) or "none yet"
    if not method:
        raise RlprofError(
            "attach: name the method of the trainers that ends a step: --ends-step METHOD (seen of "
            f"{name}: {seen})"
        )
    known = {*calls.seen, *(trainer.look.methods if trainer.look else ())}
    if ends_step and not any(re.fullmatch(ends_step, one) for one in known):
        public = [one for one in sorted(known) if one[0] != "_"]
        raise RlprofError(
            f"--ends-step: {name} has no method {ends_step}; name one of its methods: "
            f"{', '.join(calls.seen or public[:_SHOWN])}"
        )
    return calls


def _method(name: str) -> str:
    return name.rpartition(".")[2]


def _pause(seconds: float, until: float) -> None:
    if time.monotonic() > until:
        raise RlprofError("attach: no further step has begun within --timeout")
    time.sleep(seconds)
