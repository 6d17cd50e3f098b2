"""The fleet: the API of a driver on Ray, with the same names as for a single process."""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import attrs

import rlprof
from rlprof.config import check_config
from rlprof.errors import closest
from rlprof.types import DRIVER, Launch
from rlprof_ray._roll import Roll
from rlprof_ray._tie import CUT, hold

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from rlprof.config import Config

T = TypeVar("T")

log = logging.getLogger("rlprof")


class Fleet:
    """One run of many actors: the driver's session, and the members that follow it."""

    _loose: ClassVar[Fleet | None] = None
    """The open fleet of this process, unless a `with` statement closes it."""

    def __init__(
        self, config: Mapping[str, Any] | str | os.PathLike[str] | Config | None = None
    ) -> None:
        """Name the run. Raise ConfigError with all faults of *config*, in all roles."""
        given = os.environ.get("RLPROF_CONFIG") or None if config is None else config
        self._config: Config | None = None
        self._roll: Roll | None = None
        self._unknown: set[str] = set()
        """Roles that were launched and are not in the config."""
        self._is_closed = False
        self._let_go: Callable[[], None] | None = None
        """Gives `ray.shutdown` back."""
        self._pid = os.getpid()
        self.session: rlprof.Session | rlprof.Off = rlprof.Off()
        if given is None:
            return
        self._config, uses = check_config(given)
        if Fleet._loose is not None:  # training failed before its `with`, and is tried again
            advice = "the fleet of %s was left open; close it before the next, or use a `with`"
            log.warning(advice, Fleet._loose.run_dir)
            Fleet._loose.close()
        self.session = rlprof.open(self._config, role=DRIVER, rank=0, world_size=1)
        if isinstance(self.session, rlprof.Session):
            self._roll = Roll(self.session, self._config, uses)
            Fleet._loose = self

    @property
    def run_dir(self) -> Any:
        """The run folder; None where rlprof is off."""
        return self.session.run_dir

    @property
    def is_recording(self) -> bool:
        """Whether a window is open."""
        return self.session.is_recording

    def launch(self, role: str, rank: int = 0, ranks: Iterable[int] | None = None) -> Launch:
        """Return what a process of *role* must be started with; empty if it is not recorded.

        Give all *ranks* of an engine that holds several.
        `launch(...).runtime_env` is for `Actor.options(runtime_env=...)`.
        """
        if self._config is None:
            return Launch()
        if role not in self._config.roles:
            if self._config.roles and role not in self._unknown:  # said once, not for every rank
                self._unknown.add(role)
                there, hint = ", ".join(self._config.roles), closest(role, self._config.roles)
                log.warning("launch: role %r is not in the config (there: %s)%s", role, there, hint)
            return Launch()
        found = rlprof.launch(self._config, role=role, rank=rank, ranks=ranks)
        return attrs.evolve(found, runtime_env=runtime_env(found))

    @property
    def env(self) -> dict[str, str]:
        """The environment for other processes of this run, such as those of torchrun."""
        return {} if self.run_dir is None else {"RLPROF_RUN": str(self.run_dir)}

    def attach(self, /, **roles: Sequence[Any]) -> None:
        """Take live actors and replicas, by role: `attach(actor=actors, rollout=[Replica(e)])`.

        Their classes need no change. An actor under two roles is one process, and is captured
        once. Raise ConfigError for what cannot work.
        """
        if self._roll is None:
            return
        if self._is_closed:
            log.warning("attach: the fleet is closed; nothing is recorded any more")
            return
        self._let_go = self._let_go or hold(self.close)
        self._roll.attach(roles)

    def name_calls(self) -> None:
        """Take the calls of members as their phases, for a driver without phases."""
        if self._roll is not None:
            self._roll.names_calls = True
            self._roll.session.write("calls")

    @property
    def gone(self) -> tuple[tuple[str, str], ...]:
        """The members that are known to have died, and why, in the order of `attach`."""
        return () if self._roll is None else self._roll.gone

    # The same names as for a single process

    def steps(self, steps: Iterable[T]) -> Iterable[T]:
        """Iterate over *steps*, the trainer's numbers, and report each as it begins."""
        return self.session.steps(steps)

    def step(self, step: int) -> None:
        """Begin *step*, and end the step before."""
        self.session.step(step)

    def phase(self, name: str) -> Any:
        """Return the context manager (`with`, `async with`) around a phase of the step."""
        return self.session.phase(name)

    def span(self, name: str, attributes: Mapping[str, Any] | None = None) -> Any:
        """Return the context manager around anything worth a slice on the timeline."""
        return self.session.span(name, attributes)

    def figures(self) -> dict[str, float]:
        """Return figures of the last step for a logger; `{}` until one has ended."""
        return self.session.figures()

    def trajectory(self, id: Any, attributes: Mapping[str, Any] | None = None) -> Any:  # noqa: A002 -- what it is
        """Return the context manager around a trajectory of an agent loop in this process."""
        return self.session.trajectory(id, attributes)

    def close(self) -> None:
        """End step and window, close the members, wait for their exports and collect them."""
        if os.getpid() != self._pid:  # a forked child: its parent's fleet goes on
            return
        raised = None
        try:
            if self._roll is not None and not self._is_closed:
                self._roll.keep(is_closing=True)
                self._end(self._roll)
            self.session.close()
        except Exception as exc:  # strict raises; if a signal cuts this, the next call goes on
            raised = exc
        self._is_closed = True
        if self._roll is not None:
            self._roll.keep(is_closing=False)
        if Fleet._loose is self:
            Fleet._loose = None
        if self._let_go is not None:
            self._let_go()
        if raised is not None:
            raise raised

    def _end(self, roll: Roll) -> None:
        from rlprof_ray._collect import come_home

        session = roll.session
        attempt = session.attempt
        is_cut = roll.is_cut
        if is_cut:
            what = f"{CUT} before the fleet was closed, so its actors could not export"
            how = f"run `rlprof salvage {session.run_dir}` on each node"
            session.write("problem", reason=f"{what}; {how}")
        else:
            attempt("attach", roll.report_nobody)
            attempt("clocks", roll.read_clocks)
        try:
            session.close()
        finally:
            attempt("calls", roll.write_calls)
            if session.config.fleet.collect and not is_cut:
                attempt("collect", lambda: come_home(session, roll.places))

    def __enter__(self) -> Fleet:
        if Fleet._loose is self:
            Fleet._loose = None
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def runtime_env(launch: Launch) -> dict[str, Any]:
    """Return all needs of *launch* as a `runtime_env` of Ray; empty if it has none."""
    env = dict(launch.runtime_env)
    if launch.env:
        env["env_vars"] = {**launch.env, **env.get("env_vars", {})}
    return env
