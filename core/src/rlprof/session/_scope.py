"""`phase`, `span` and `steps`: what training code wraps around its work.

Idle, it costs two clock readings and one append; the helper thread writes the span.
"""

from __future__ import annotations

import threading
import time
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from itertools import count

    from typing_extensions import Self

around: ContextVar[Scope | None] = ContextVar("rlprof_around", default=None)
"""The scope around the running code: a thread and an asyncio task each have their own.

It may hold an ended scope, if scopes end out of turn or in another task; readers skip it.
"""

T = TypeVar("T")


class Host(Protocol):
    """The part of a session that a scope uses."""

    ids: count[int]
    current_step: int | None
    step_id: int | None
    """The span of the step, if it has begun here."""
    is_cut: bool
    """Whether training leaves the step before its end."""

    def step(self, step: Any) -> None:
        """Begin *step*, and end the step before."""

    def end_steps(self) -> None:
        """End the last step: the loop is over."""

    def count(self, phase: str) -> int:
        """Return how often the step entered *phase* before."""

    def enter(self, scope: Scope) -> None:
        """Open the windows that are due with a phase, and its range."""

    def leave(self, scope: Scope) -> None:
        """Write the span, and close the range and the windows."""

    async def open_away(self, scope: Scope) -> None:
        """Open the windows of engines that may need the event loop of this thread."""

    async def close_away(self, scope: Scope) -> None:
        """Close them."""


class Scope:
    """One phase or one span, from entry to exit."""

    __slots__ = (
        "above", "again", "attributes", "common", "detached", "end_ns", "id", "is_async",
        "is_cancelled", "is_open", "is_phase", "made_with", "name", "occurrence", "parent", "path",
        "session", "start_ns", "step", "thread",
    )  # fmt: skip

    def __init__(
        self, session: Host, name: str, attributes: dict[str, Any] | None, *, is_phase: bool
    ) -> None:
        self.session = session
        self.name = name
        self.attributes = self.made_with = attributes
        self.is_phase = is_phase
        self.detached = False
        """True: it does not become the parent of what runs inside it."""
        self.occurrence = 0
        self.above: Scope | None = None
        self.parent: int | None = None
        self.common: dict[str, Any] | None = None
        """Attributes of all spans inside, never changed: the id of a trajectory."""
        self.path: Scope | None = None
        """The trajectory whose method made it."""
        self.is_open = False
        self.again = 0
        """How often it was entered while open; the outermost exit ends it."""
        self.is_async = False
        """Entered by `async with`: other threads open and close the windows of engines."""
        self.is_cancelled = False
        """Whether its task was cancelled while the windows opened."""
        self.end_ns = 0
        """0: it has not ended, or was never entered."""

    def __enter__(self) -> Self:
        if self.is_open:
            self.again += 1
            return self
        self._prepare()
        self.is_open = True  # first: another thread may begin a step, and would find it ended
        if self.is_phase:
            try:
                self.session.enter(self)
            except BaseException:
                self.is_open = False
                raise
        if not self.detached:  # as _begin, which would cost a call more
            around.set(self)
        self.start_ns = time.monotonic_ns()
        return self

    def _prepare(self) -> None:
        session, has_ended = self.session, self.end_ns
        if has_ended:
            self._renew()
        self.thread = threading.get_ident()
        if self.is_phase:
            self.occurrence = session.count(self.name)
        above = around.get()
        while above is not None and not (above.is_open and above.session is session):
            above = above.above
        self.above = None if has_ended and _holds(above, self) else above
        self.id = next(session.ids)
        self.step = session.current_step
        if above is not None:
            self.parent = above.id
            if self.common is None:
                self.common = above.common
        elif self.step is not None:  # now: when it ends, it may be another step's turn
            self.parent = session.step_id
        path = self.path
        if path is not None and path.is_open and (above is None or above.common is not self.common):
            self.parent = path.id

    def _renew(self) -> None:
        """Forget the last entry: its notes, its parent, how it ended."""
        self.attributes, self.parent, self.end_ns = self.made_with, None, 0
        self.is_async = self.is_cancelled = False
        if type(self) is Scope:  # a trajectory keeps its id, and so do its parts
            self.common = None

    def _begin(self) -> Self:
        if not self.detached:
            around.set(self)
        self.start_ns = time.monotonic_ns()
        return self

    def __exit__(self, kind: object, exc: object, trace: object) -> None:
        if self._end(kind):
            self.session.leave(self)

    def _end(self, kind: object) -> bool:
        if not self.is_open:  # left twice, or never entered
            return False
        if self.again:
            self.again -= 1
            return False
        self.end_ns = time.monotonic_ns()
        self.is_open = False
        above = self.above
        while above is not None and not above.is_open:
            above = above.above
        self.above = above  # it keeps no scope alive that has ended
        if around.get() is self:
            around.set(above)
        if kind is not None:
            self.note("error", getattr(kind, "__name__", "?"))
        return True

    async def __aenter__(self) -> Self:
        if self.is_open:
            self.again += 1
            return self
        self._prepare()
        self.is_open = True
        if self.is_phase:
            self.is_async = True
            try:
                await self.session.open_away(self)
                self.session.enter(self)
            except BaseException:
                self.is_open = False
                raise
        return self._begin()

    async def __aexit__(self, kind: object, exc: object, trace: object) -> None:
        if self._end(kind):
            try:
                if self.is_phase:
                    await self.session.close_away(self)
            finally:  # also where the task is cancelled
                self.session.leave(self)

    def written(self) -> Mapping[str, Any] | None:
        """Return the attributes for its line; its own come first."""
        if self.common is None:
            return self.attributes
        return self.common if self.attributes is None else self.common | self.attributes

    def note(self, key: str, value: Any) -> None:
        """Keep *value* with the span: a number of tokens, the id of a trajectory."""
        noted = self.attributes
        if noted is None or noted is self.made_with:  # it may be entered again
            noted = self.attributes = dict(noted or {})
        noted[key if type(key) is str else named(key)] = value


class Steps(Generic[T]):
    """The steps of a loop, otherwise like the iterable that was given."""

    def __init__(self, session: Host, steps: Iterable[T]) -> None:
        self._session, self._steps = session, steps
        self._own: Iterator[T] | None = None

    def __iter__(self) -> Iterator[T]:
        session = self._session
        try:
            for step in self._steps:
                session.step(step)
                yield step
        except GeneratorExit:  # by `break` or an exception
            session.is_cut = True
            raise
        finally:
            session.end_steps()

    def __len__(self) -> int:
        return len(self._steps)  # type: ignore[arg-type]  # as without rlprof

    def __bool__(self) -> bool:
        return bool(self._steps)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._steps, name)

    def __next__(self) -> T:
        self._own = self._own or iter(self)
        return next(self._own)


def named(name: Any) -> str:
    """Return *name* as text; an object of training may fail to become one."""
    try:
        return str(name)
    except Exception:  # noqa: BLE001 -- of an object of training
        return f"a {type(name).__name__}"


def noted(attributes: Any) -> dict[str, Any] | None:
    """Copy the attributes of a span; keep other values unchanged, under a name of ours."""
    try:
        return dict(attributes) or None
    except Exception:  # noqa: BLE001 -- likewise
        return {"attributes": attributes}


def _holds(above: Scope | None, scope: Scope) -> bool:
    """Whether *scope*, which is entered again, is above *above*: it would be above itself."""
    while above is not None and above is not scope:
        above = above.above
    return above is not None
