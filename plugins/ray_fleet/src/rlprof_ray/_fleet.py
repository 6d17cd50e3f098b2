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
from rlprof.fleets import Track, leader
from rlprof.schedule import Agenda
from rlprof.types import Launch, Target
from rlprof_ray import _rest
from rlprof_ray._clocks import measure
from rlprof_ray._crew import Crew
from rlprof_ray._inside import Hello
from rlprof_ray._member import Member
from rlprof_ray._replica import Methods, Replica, numbered
from rlprof_ray._tie import CUT, hold

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from types import TracebackType

    from rlprof.config import Config

T = TypeVar("T")

DRIVER = "driver"
"""The role of the driver; a config may name it, to have it recorded too."""

log = logging.getLogger("rlprof")


class Fleet:
    """One run of many actors: the driver's session, and the members that follow it."""

    def __init__(
        self, config: Mapping[str, Any] | str | os.PathLike[str] | Config | None = None
    ) -> None:
        """Name the run. Raise ConfigError with every fault of *config*, of all its roles."""
        given = os.environ.get("RLPROF_CONFIG") or None if config is None else config
        self._crews: dict[str, Crew] = {}
        self._known: dict[str, Member] = {}
        self._is_closed = False
        self._let_go: Callable[[], None] | None = None
        if given is None:
            self._config = None
            self.session: rlprof.Session | rlprof.Off = rlprof.Off()
            return
        checked, self._uses = check_config(given)
        self._config = checked
        roles = {DRIVER: attrs.evolve(next(iter(checked.roles.values())), ranks=()),
                 **checked.roles} if checked.roles else checked.roles  # fmt: skip
        self.session = rlprof.open(attrs.evolve(checked, roles=roles), role=DRIVER, rank=0,
                                   world_size=1)  # fmt: skip

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

    def attach(self, **roles: Sequence[Any]) -> None:
        """Take live actors and replicas, by role: `attach(actor=actors, rollout=[Replica(e)])`.

        Their classes need no change. An actor that is given under two roles is one process, and is
        captured once. Raise ConfigError for what cannot work.
        """
        if self._config is None or isinstance(self.session, rlprof.Off):
            return
        faults: list[str] = []
        for role in roles:
            if role not in self._config.roles:
                there = ", ".join(self._config.roles)
                log.warning("role %r is not in the config (there: %s): not recorded", role, there)
        chosen = {role: given for role, given in roles.items() if role in self._config.roles}
        for role, given in chosen.items():
            world = len(given)
            if self._config.roles[role].engine is not None:
                world = max((max(one.ranks or (0,)) for one in numbered(given)), default=0) + 1
            beyond = [rank for rank in self._config.roles[role].ranks or () if rank >= world]
            if beyond:
                faults.append(
                    f"roles.{role}.ranks: rank {beyond[0]} does not exist among {world} ranks"
                )
        if faults:
            raise ConfigError(faults)
        for role, given in chosen.items():
            if self._config.roles[role].engine is None:
                self._add(role, list(enumerate(given)), len(given))
            else:
                self._add_replicas(role, numbered(given))

    def _add(self, role: str, given: list[tuple[int, Any]], world: int) -> None:
        own = self._config.roles[role]  # type: ignore[union-attr]
        hellos = [
            (actor, self._hello(Target(role, rank, world)))
            for rank, actor in given
            if own.includes(rank)
        ]
        self._enlist(role, hellos, range(world))

    def _read_clocks(self) -> None:
        """Say in the manifest how far the members' clocks are ahead."""
        if isinstance(self.session, rlprof.Session) and self._known:
            means = self.session.means
            for line in measure(self._known.values(), means.here.boot_id):
                means.scribe.tell("clock_offset", **line)

    def _add_replicas(self, role: str, replicas: list[Replica]) -> None:
        own = self._config.roles[role]  # type: ignore[union-attr]
        world = max((max(one.ranks or (0,)) for one in replicas), default=0) + 1
        config = self._config.as_data()  # type: ignore[union-attr]
        if own.tool is None:  # those of the run are for training; a server is recorded if asked
            config["roles"] = {**config["roles"], role: {**config["roles"][role], "tool": []}}
        hellos = []
        for number, one in enumerate(replicas):
            ranks = one.ranks or ()
            if not any(own.includes(rank) for rank in ranks):
                continue
            if one.attribute is None:
                handle = Methods(one.handle) if one.via == "methods" else one.handle
                self.session.attach(
                    handle, role=role, replica=number, ranks=ranks, coordinates=one.coordinates
                )
                continue
            target = Target(role, ranks[0], world, replica=number, coordinates=one.coordinates)
            hello = attrs.evolve(
                self._hello(target), config=config, attribute=one.attribute, ranks=ranks
            )
            hellos.append((one.handle, hello))
        self._enlist(role, hellos, [rank for one in replicas for rank in one.ranks or ()])

    def _enlist(self, role: str, hellos: list[tuple[Any, Hello]], ranks: Iterable[int]) -> None:
        """Have actors follow, all at once; each has the time a tool has to warm up."""
        if not hellos or isinstance(self.session, rlprof.Off) or self._config is None:
            return
        self._let_go = self._let_go or hold(self.close)
        crew = self._crews.get(role) or self._new_crew(role, tuple(ranks))
        asks = []
        for actor, hello in hellos:
            member = Member(actor, hello)
            known = self._known.setdefault(member.id, member)
            crew.members.append(known)
            if known is member:
                asks.append(member.enter(self._config.limits.configure_timeout_s))
        crew.ask(asks)
        crew.settle(asks, within_s=self._config.limits.configure_timeout_s)
        self._read_clocks()
        crew.watch()

    def _new_crew(self, role: str, ranks: tuple[int, ...]) -> Crew:
        config, session = self._config, self.session
        assert config is not None  # noqa: S101 -- for mypy: who is off enlists nobody
        assert isinstance(session, rlprof.Session)  # noqa: S101
        crew = self._crews[role] = Crew(role, session.means, config.as_data())
        target = Target(role, 0, max(ranks) + 1)
        track = Track(
            target,
            Agenda(config.schedule(role)),
            session.means,
            crew,  # type: ignore[arg-type]  # has what a track asks of Instruments
            ranks=ranks,
        )
        session.add(track)
        own = config.roles[role]
        is_server = own.engine is not None and own.tool is None
        track.adopt([use for use in self._uses[role] if use.kind == "engine" or not is_server])
        return crew

    def _hello(self, target: Target) -> Hello:
        assert self._config is not None  # noqa: S101 -- who is off enlists nobody
        return Hello(self._config.as_data(), str(self.run_dir), target, leader())

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

    def close(self) -> None:
        """End step and window, have the members end, wait for their exports.

        What members could not export, since Ray was shut down before, is salvaged here.
        """
        session, was_closed, self._is_closed = self.session, self._is_closed, True
        if isinstance(session, rlprof.Session) and not was_closed:
            self._end(session)
        session.close()
        if self._let_go is not None:
            self._let_go()

    def _end(self, session: rlprof.Session) -> None:
        if any(member.gone == CUT for member in self._known.values()):
            _rest.tell(session)
            try:
                session.close()
            finally:
                rest = partial(_rest.rescue, session.run_dir, session.means.limits.export_timeout_s)
                session.boundary.call("salvage", rest, lambda _: None)
        else:
            session.boundary.call("clocks", self._read_clocks, lambda _: None)

    def __enter__(self) -> Fleet:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exc: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
