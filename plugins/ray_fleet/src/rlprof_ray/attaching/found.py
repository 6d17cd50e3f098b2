"""The members of a live run: the recorded actors, their roles and ranks, and why others are not."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import attrs

from rlprof import plugins
from rlprof.distributions import KNOWN
from rlprof.errors import RlprofError, closest, shown
from rlprof_ray._replica import Replica
from rlprof_ray.attaching.actors import handle_of, living
from rlprof_ray.attaching.frameworks import kind_of
from rlprof_ray.attaching.look import look_at

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rlprof_ray.attaching.actors import Actor
    from rlprof_ray.attaching.frameworks import Kind
    from rlprof_ray.attaching.look import Look

_SHOWN = 8
"""Most actors that an error names; a cluster may have hundreds."""


@attrs.frozen(eq=False)
class Member:
    """An actor of the run."""

    actor: Actor
    kind: Kind
    handle: Any
    look: Look | None
    problem: str = ""
    """Why it is not recorded."""

    @property
    def role(self) -> str:
        """The role it is recorded as: the one it reports, else that of its class."""
        roles = () if self.look is None else self.look.roles
        own = not roles or any("actor" in one or "policy" in one for one in roles)
        return self.kind.role if own else roles[0]

    @property
    def replica(self) -> Replica:
        """The `via` of its replica, if it holds an engine."""
        look = self.look
        if look is None or look.url:
            return Replica("" if look is None else look.url, via="url")
        sizes = {"tp": look.size}
        return Replica(self.handle, via=f"actor:{self.kind.engine}", coordinates=sizes)

    @property
    def engine(self) -> str:
        """The plugin that records its engine."""
        if self.look is None:
            return ""
        return self.kind.server if self.look.url else self.look.engine


def find(
    kinds: Sequence[Kind], job: str, within_s: float, report: Callable[[str], None]
) -> list[Member]:
    """Find the actors of *kinds* and ask each; raise RlprofError unless there is one run."""
    everyone = living()
    matched = [
        (actor, kind) for actor in everyone if (kind := kind_of(actor.kind, actor.name, kinds))
    ]
    jobs = list(dict.fromkeys(actor.record.job_id.hex() for actor, _ in matched))
    if len(jobs) > 1 and not job:
        raise RlprofError(f"attach: several runs are live; name one: --job {' or '.join(jobs)}")
    matched = [one for one in matched if not job or one[0].record.job_id.hex() == job]
    if not matched:
        raise RlprofError(_nobody(everyone, kinds, job))
    handles = {actor.id: handle_of(actor) for actor, _ in matched}
    asked = {actor.id: (handles[actor.id], kind.engine, kind.version) for actor, kind in matched}
    looks, failed = look_at(asked, within_s, report)
    found = [
        _member(actor, kind, handles[actor.id], looks.get(actor.id), failed.get(actor.id, ""))
        for actor, kind in matched
    ]
    return sorted(found, key=lambda one: (one.role, _place(one)))


def check(found: Sequence[Member], tools: Sequence[str]) -> None:
    """Raise RlprofError if none of them can be recorded."""
    for one in found:
        if one.look is not None and one.look.run:
            raise RlprofError(
                f"attach: {one.actor.label} is recorded by another fleet: {one.look.run}; record "
                f"with its run: rlprof capture {one.look.run}"
            )
    there = [one for one in found if one.look is not None and not one.problem]
    if not there:
        raise RlprofError("attach: no actor of the run can be recorded")
    reached = [one for one in there if one.look is not None and not one.look.url]
    wanted = [*tools, *{one.engine for one in reached if one.kind.engine}]
    for look in (one.look for one in reached if one.look is not None):
        names = [name for name in wanted if name not in look.plugins]
        if names:
            _check_spelling(tools)
            what = ", ".join(names) if look.plugins else "rlprof"
            known = {name: dist for (_, name), dist in KNOWN.items()}
            ask = " ".join(["rlprof-ray", *(known.get(name, f"rlprof-{name}") for name in names)])
            how = f"{look.python} -m pip install"
            if not look.has_pip:
                how = f"uv pip install --python {look.python}"
            raise RlprofError(
                f"attach: {what} is not installed where actors run; install it there: {how} {ask}"
            )


def _check_spelling(tools: Sequence[str]) -> None:
    """Raise RlprofError for a tool that nobody knows."""
    known = {*plugins.names("tool"), *(name for kind, name in KNOWN if kind == "tool")}
    for name in tools:
        if name not in known:
            raise RlprofError(f"--tool: {shown(name)} is no tool{closest(name, sorted(known))}")


def _member(actor: Actor, kind: Kind, handle: Any, look: Look | None, problem: str) -> Member:
    if look is not None:
        handle._ray_allow_out_of_order_execution = not look.is_ordered  # noqa: SLF001
        if kind.engine and not (look.engine or look.url):
            problem = f"has no engine in {kind.engine}"
        elif look.url and kind.server == "vllm" and "vllm" not in look.plugins:
            problem = "rlprof-vllm was not there when its server started"
    return Member(actor, kind, handle, look, problem)


def _place(one: Member) -> tuple[Any, ...]:
    """Sort members as the framework numbers them: by rank, by name, else by age."""
    numbers = re.search(r"(\d+)[_:-](\d+)$", one.actor.name)
    named = tuple(map(int, numbers.groups())) if numbers else ()
    rank = None if one.kind.engine or one.look is None else one.look.rank
    return (one.kind.pattern, -1 if rank is None else rank, named, one.actor.started_ms)


def _nobody(everyone: Sequence[Actor], kinds: Sequence[Kind], job: str) -> str:
    given = " or ".join(kind.pattern for kind in kinds if kind.is_users)
    if given:
        live = [one for one in everyone if not job or one.record.job_id.hex() == job]
        there = _some({f"{one.kind} {one.name}".strip() for one in live})
        return f"attach: no actor matches {given}; the live actors are: {there}"
    there = _some({actor.kind for actor in everyone})
    return (
        f"attach: no run of a known framework is live here (classes of actors: {there}); name its "
        "actors: --actors REGEX --role actor"
    )


def _some(names: set[str]) -> str:
    more = [f"and {len(names) - _SHOWN} more"] if len(names) > _SHOWN else []
    return ", ".join([*sorted(names)[:_SHOWN], *more]) or "none"
