"""The members of the fleet, by role, and the tracks that record them."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import attrs

from rlprof.errors import ConfigError, closest
from rlprof.schedule import Schedule
from rlprof.types import DRIVER, Target
from rlprof_ray._attach import listed
from rlprof_ray._clocks import measure
from rlprof_ray._crew import Crew
from rlprof_ray._history import History
from rlprof_ray._member import Member, id_of, is_ordered
from rlprof_ray._messages import Hello
from rlprof_ray._post import Post
from rlprof_remote import Leader

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rlprof import Session
    from rlprof.config import Config, ToolUse
    from rlprof.session._track import Track
    from rlprof_ray._attach import Given
    from rlprof_run import Place

log = logging.getLogger("rlprof")


class Roll:
    """Takes the objects that a driver attaches, by role; an actor under two roles is one member."""

    def __init__(
        self, session: Session, config: Config, uses: Mapping[str, Sequence[ToolUse]]
    ) -> None:
        self.session = session
        self._config = config
        self._uses = uses
        self._crews: dict[str, tuple[Crew, Track]] = {}
        self._members: dict[str, Member] = {}
        self.places: set[Place] = set()
        """Folders other than the run folder in which members write."""
        self._history: History | None = None
        self._has_attached = False
        self.names_calls = False
        """Whether the calls of a step are its phases, because the driver has none."""

    @property
    def gone(self) -> tuple[tuple[str, str], ...]:
        """The members that are known to have died, and why."""
        everyone = self._members.values()
        return tuple((str(one.target), one.died) for one in everyone if one.died)

    @property
    def is_cut(self) -> bool:
        """Whether Ray was shut down, so that members cannot be asked any more."""
        return any(member.is_cut for member in self._members.values())

    def keep(self, *, is_closing: bool) -> None:
        """Let no member end while the fleet closes; else let them go with training's handles."""
        for member in self._members.values():
            member.is_closing = is_closing
            member.let_go()

    def attach(self, roles: Mapping[str, Sequence[Any]]) -> None:
        """Take actors and replicas by role; raise ConfigError for what cannot work."""
        self._has_attached = self._has_attached or any(roles.values())
        asked = self._config.roles
        found = {role: listed(role, given, asked.get(role)) for role, given in roles.items()}
        faults = list(self._torn(found))
        if DRIVER in found:
            why = "is the role of the driver; name another role for the actors"
            faults.append(f"attach: {DRIVER}: {why}")
        if faults:
            raise ConfigError(faults)
        for role, given in found.items():
            if asked and role not in asked and given:
                there = ", ".join(asked)
                message = "role %r is not in the config (there: %s): recorded on request only%s"
                log.warning(message, role, there, closest(role, asked))
            self._reach(role, [one for one in given if not one.is_member])
            members = [one for one in given if one.is_member]
            if members:
                self._enlist(role, members)
        self.read_clocks()

    def report_nobody(self) -> None:
        """Report that no actor was attached, if the driver records nothing itself; name engines."""
        there = {track.target.role for track in self.session.tracks}
        for role, own in self._config.roles.items():
            if own.engine is not None and role not in there and self._has_attached:
                self.session.log(f"{role}: no engine was attached", logging.WARNING)
        is_due = any(map(self._config.records, self._config.roles))
        if is_due and not self._has_attached and len(self.session.tracks) == 1:
            reason = "no actor was attached: call fleet.attach(ROLE=actors) before the first step"
            self.session.write("problem", reason=reason)
            self.session.log(reason, logging.WARNING)

    def write_calls(self) -> None:
        """Write the last of the members' calls in Ray's record."""
        if self._history is not None:
            self._history.close()

    def _torn(self, found: Mapping[str, Sequence[Given]]) -> Iterator[str]:
        """Name actors whose two roles have different tools: an actor has one session."""
        first = {member.id: member.target.role for member in self._members.values()}
        tools = {role: self._config.tools_of(role) for role in self._config.roles}
        for role, given in found.items():
            members = [one for one in given if one.is_member and role in tools]
            for other in {first.setdefault(id_of(one.handle), role) for one in members}:
                if tools.get(other, tools[role]) != tools[role]:
                    here, there = (", ".join(tools[one]) or "none" for one in (role, other))
                    yield (
                        f"roles.{role}.tool: one of its actors is attached as {other}, too, and an "
                        f"actor has one session; name the same tools for both roles ({role}: "
                        f"{here}; {other}: {there})"
                    )

    def read_clocks(self) -> None:
        """Note the lead of the members' clocks in the manifest."""
        session = self.session
        there = [member for member in self._members.values() if member.has_entered]
        for line in measure(there, session.here.boot_id):
            session.write("clock_offset", **line)

    def _reach(self, role: str, given: Sequence[Given]) -> None:
        """Attach engines that the driver reaches by itself."""
        for one in given:
            target = one.target
            self.session.attach(
                one.handle, role=role, replica=target.replica or 0, ranks=one.ranks,
                world_size=target.world_size, coordinates=target.coordinates,
            )  # fmt: skip

    def _enlist(self, role: str, given: Sequence[Given]) -> None:
        """Ask actors to follow, all at once; each has the time of a tool's warm-up."""
        if role not in self._crews:
            self._crews[role] = self._new_crew(role, given[0].target.world_size)
        crew, track = self._crews[role]
        asked = self._config.roles  # none: spans of every role
        own = asked.get(role)
        for one in given:
            member = self._member(crew, role, one)
            target = member.target
            is_chosen = any(own.includes(rank) for rank in one.ranks) if own else not asked
            crew.post(Post(one.ranks, member, is_chosen))
            about = {"target": attrs.asdict(target), "ranks": list(one.ranks)}
            self.session.write("attached", role=role, **about)
        track.ranks = crew.ranks
        crew.enter([post.member for post in crew.posts if post.is_chosen])
        crew.settle(within_s=self._config.limits.configure_timeout_s)
        crew.watch()
        if self._history is None:
            self._history = History(self.session, self._members, names_calls=self.names_calls)

    def _member(self, crew: Crew, role: str, one: Given) -> Member:
        """Return the member *one*, perhaps known under another role or an old rank."""
        member = Member(one.handle, self._hello(one))
        known = self._members.get(member.id)
        if known is None or (known.target != one.target and known.target.role == role):
            if known is not None:  # it moves up: its session is that of a rank
                limits = self._config.limits
                crew.dismiss([known], limits.export_timeout_s + limits.stop_timeout_s)
                crew.posts = [post for post in crew.posts if post.member is not known]
                member.comes_after(known)
            self._members[member.id] = known = member
        return known

    def _new_crew(self, role: str, world: int) -> tuple[Crew, Track]:
        session, is_asked = self.session, role in self._config.roles
        has_spans_only = is_asked and not self._config.records(role)
        schedule = self._config.schedule(role)
        if has_spans_only:  # its members hear of whole steps
            schedule = Schedule(self._config.steps, "continuous")
        crew = Crew(role, session, self.places)
        track = session.lead(
            Target(role, 0, world), schedule, self._uses.get(role, ()), crew,
            needs_tools=not has_spans_only,
        )  # fmt: skip
        session.watchers.append(lambda: crew.expect(track.waiting))
        return crew, track

    def _hello(self, one: Given) -> Hello:
        """Return the data that a member needs."""
        run = self.session.run
        part = run.run_id if run.attempt == 1 else f"{run.run_id}/{run.path.name}"
        return Hello(
            self._config.as_data(), str(run.path), one.target, Leader.of(self.session),
            attribute=one.attribute, ranks=one.ranks, is_ordered=is_ordered(one.handle),
            node_dir=self._config.fleet.node_dir, part=part,
        )  # fmt: skip
