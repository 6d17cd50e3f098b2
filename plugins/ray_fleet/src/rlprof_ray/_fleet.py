"""The fleet: what a driver on Ray calls, with the words of a single process."""

from __future__ import annotations

import logging
import os
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import attrs

import rlprof
from rlprof.config import check_config
from rlprof.errors import ConfigError
from rlprof.fleets import DRIVER, Track, leader
from rlprof.schedule import Agenda, Schedule
from rlprof.types import Launch, Target
from rlprof_ray import _rest
from rlprof_ray._attach import faults, listed
from rlprof_ray._clocks import measure
from rlprof_ray._crew import Crew, Post
from rlprof_ray._inside import Hello
from rlprof_ray._member import Member, is_ordered
from rlprof_ray._tie import CUT, hold

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from types import TracebackType

    from rlprof.config import Config
    from rlprof.rundir import Place
    from rlprof_ray._attach import Given

T = TypeVar("T")

log = logging.getLogger("rlprof")


class Fleet:
    """One run of many actors: the driver's session, and the members that follow it."""

    def __init__(
        self, config: Mapping[str, Any] | str | os.PathLike[str] | Config | None = None
    ) -> None:
        """Name the run. Raise ConfigError with every fault of *config*, of all its roles."""
        given = os.environ.get("RLPROF_CONFIG") or None if config is None else config
        self._crews: dict[str, tuple[Crew, Track]] = {}
        self._known: dict[str, Member] = {}
        self._is_closed = False
        self._is_home: set[Place] = set()
        self._let_go: Callable[[], None] | None = None
        if given is None:
            self._config = None
            self.session: rlprof.Session | rlprof.Off = rlprof.Off()
            return
        checked, self._uses = check_config(given)
        self._config = checked
        self.session = rlprof.open(checked, role=DRIVER, rank=0, world_size=1)

    @property
    def run_dir(self) -> Any:
        """The run folder; None where rlprof is off."""
        return self.session.run_dir

    @property
    def is_recording(self) -> bool:
        """Whether a window is open."""
        return self.session.is_recording

    def launch(self, role: str, rank: int = 0) -> Launch:
        """Say what a process of *role* must be born with; one that is not chosen needs nothing.

        `launch(...).runtime_env` is for `Actor.options(runtime_env=...)`.
        """
        if self._config is None:
            return Launch()
        found = rlprof.launch(self._config, role=role, rank=rank)
        if not found.env:
            return found
        env = dict(found.runtime_env)
        env["env_vars"] = {**found.env, **env.get("env_vars", {})}
        return attrs.evolve(found, runtime_env=env)

    @property
    def env(self) -> dict[str, str]:
        """What makes a process part of this run that is no actor, such as one of torchrun."""
        return {} if self.run_dir is None else {"RLPROF_RUN": str(self.run_dir)}

    def attach(self, **roles: Sequence[Any]) -> None:
        """Take live actors and replicas, by role: `attach(actor=actors, rollout=[Replica(e)])`.

        Their classes need no change. An actor that is given under two roles is one process, and is
        captured once. Raise ConfigError for what cannot work.
        """
        if self._config is None or not isinstance(self.session, rlprof.Session):
            return
        asked = self._config.roles
        found = {role: listed(role, given, asked.get(role)) for role, given in roles.items()}
        told = [
            fault
            for role, given in found.items()
            if role in asked
            for fault in faults(role, given, asked[role], self._uses[role])
        ]
        if told:
            raise ConfigError(told)
        for role, given in found.items():
            if role not in asked:
                there = ", ".join(asked)
                message = "role %r is not in the config (there: %s): recorded on request only"
                log.warning(message, role, there)
            self._reach(role, [one for one in given if not one.is_member])
            members = [one for one in given if one.is_member]
            if members:
                self._enlist(role, members, self.session, self._config)

    def _reach(self, role: str, given: Sequence[Given]) -> None:
        """Attach engines that the driver reaches by itself."""
        for one in given:
            target = one.target
            self.session.attach(
                one.handle, role=role, replica=target.replica or 0, ranks=one.ranks,
                coordinates=target.coordinates,
            )  # fmt: skip

    def _enlist(
        self, role: str, given: Sequence[Given], session: rlprof.Session, config: Config
    ) -> None:
        """Have actors follow, all at once; each has the time a tool has to warm up."""
        self._let_go = self._let_go or hold(self.close)
        if role not in self._crews:
            self._add_track(role, given, session, config)
        crew, track = self._crews[role]
        own = config.roles.get(role)
        for one in given:
            member = Member(one.handle, self._hello(one, session, config))
            member = self._known.setdefault(member.id, member)
            target = member.hello.target
            is_chosen = own is not None and any(own.includes(rank) for rank in one.ranks)
            crew.post(Post(target, one.ranks, member, is_chosen))
            session.scribe.tell(
                "attached", role=role, target=attrs.asdict(target), ranks=list(one.ranks)
            )
        track.ranks = crew.ranks
        crew.enter([post.member for post in crew.posts if post.is_chosen])
        crew.settle(within_s=session.means.limits.configure_timeout_s)
        self._read_clocks()
        crew.watch()

    def _add_track(
        self, role: str, given: Sequence[Given], session: rlprof.Session, config: Config
    ) -> None:
        crew = Crew(role, session.means, config.as_data())
        track = Track(
            Target(role, 0, given[0].target.world_size),
            Agenda(_schedule(config, role)),
            session.means,
            crew,  # type: ignore[arg-type]  # has what a track asks of Instruments
            kinds=("tool", "engine"),
        )
        self._crews[role] = crew, track
        track.needs_tools = role not in config.roles or config.records(role)
        session.add(track)
        session.watchers.append(lambda: crew.expect(track.waiting))
        track.adopt(self._uses.get(role, ()))

    def _read_clocks(self) -> None:
        """Say in the manifest how far the members' clocks are ahead."""
        if isinstance(self.session, rlprof.Session):
            means = self.session.means
            there = [member for member in self._known.values() if member.has_entered]
            for line in measure(there, means.here.boot_id):
                means.scribe.tell("clock_offset", **line)

    def _hello(self, one: Given, session: rlprof.Session, config: Config) -> Hello:
        """Say what a member must know."""
        run = session.means.run
        part = run.run_id if run.attempt == 1 else f"{run.run_id}/{run.path.name}"
        return Hello(
            config.as_data(), str(run.path), one.target, leader(),
            attribute=one.attribute, ranks=one.ranks, any_thread=not is_ordered(one.handle),
            node_dir=config.fleet.node_dir, part=part,
        )  # fmt: skip

    # The words of a single process

    def steps(self, steps: Iterable[T]) -> Iterable[T]:
        """Go through *steps*, the trainer's own numbers, telling of each as it begins."""
        return self.session.steps(steps)

    def step(self, step: int) -> None:
        """Say that *step* begins, and with it the one before ends."""
        self.session.step(step)

    def phase(self, name: str) -> Any:
        """Return the context manager (`with`, `async with`) around a phase of the step."""
        return self.session.phase(name)

    def span(self, name: str, attributes: Mapping[str, Any] | None = None) -> Any:
        """Return the context manager around anything worth a line on the timeline."""
        return self.session.span(name, attributes)

    def trajectory(self, id: Any, attributes: Mapping[str, Any] | None = None) -> Any:  # noqa: A002 -- what it is
        """Return the context manager around a trajectory of an agent loop in this process."""
        return self.session.trajectory(id, attributes)

    def close(self) -> None:
        """End step and window, have the members end, wait for their exports, bring them home.

        What members could not export, since Ray was shut down before, is salvaged here.
        """
        session, was_closed, self._is_closed = self.session, self._is_closed, True
        try:
            if isinstance(session, rlprof.Session) and self._config is not None and not was_closed:
                self._end(session, self._config)
            session.close()
        finally:  # also if strict has raised
            if self._let_go is not None:
                self._let_go()

    def _end(self, session: rlprof.Session, config: Config) -> None:
        if any(member.gone == CUT for member in self._known.values()):
            _rest.tell(session)
            try:
                session.close()
            finally:
                rest = partial(_rest.rescue, session.run_dir, session.means.limits.export_timeout_s)
                session.boundary.call("salvage", rest, lambda _: None)
            return
        session.boundary.call("clocks", self._read_clocks, lambda _: None)
        try:
            session.close()
        finally:
            bring = config.fleet.collect
            session.boundary.call("collect", lambda: self._collect(bring=bring), lambda _: None)

    def collect(self) -> bool:
        """Bring home what members have left on their nodes; say whether all of it is.

        `close` does it by itself, unless the config has `fleet: {collect: false}`.
        """
        if not self._is_closed:
            log.warning("collect: members still write; nothing is brought home before close()")
            return False
        return self._collect(bring=True)

    def _collect(self, *, bring: bool) -> bool:
        import ray

        from rlprof_ray._collect import collect

        session = self.session
        places = {
            place for crew, _ in self._crews.values() for place in crew.places
        } - self._is_home
        if not places or not isinstance(session, rlprof.Session) or self._config is None:
            return True
        later = f"bring it home with: rlprof collect {self.run_dir}"
        if not ray.is_initialized():  # to ask for an agent now would begin a new cluster
            session.boundary.say(
                f"Ray is shut down and files lie on nodes; {later}", logging.WARNING
            )
            return False
        outcomes = collect(
            session.means.run,
            sorted(places, key=attrs.astuple),
            of=session.scribe.name,
            within_s=self._config.limits.export_timeout_s,
            say=session.boundary.say,
            bring=bring,
        )
        for outcome in outcomes:
            where = f"{outcome.place.host} in {outcome.place.folder}"
            if outcome.error:
                session.boundary.say(f"left on {where}: {outcome.error}; {later}", logging.WARNING)
            else:
                session.boundary.say(f"brought home from {where}: {outcome.files} files")
                self._is_home.add(outcome.place)
        return not any(outcome.error for outcome in outcomes)

    def __enter__(self) -> Fleet:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exc: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _schedule(config: Config, role: str) -> Schedule:
    """Say when members of *role* are told of a step; those with spans only, in whole steps."""
    if role in config.roles and not config.records(role):
        return Schedule(config.steps, "continuous")
    return config.schedule(role)
