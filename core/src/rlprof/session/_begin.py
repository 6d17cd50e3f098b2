"""From a config to the session of this process; the heavy part of `rlprof.open`."""

from __future__ import annotations

import atexit
import logging
import os
import sys
import tempfile
import threading
from contextlib import suppress
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
from pluggy import PluginManager

from rlprof import plugins
from rlprof.config import check_config
from rlprof.errors import ConfigError, RlprofError, RunError, closest
from rlprof.plugins import core_version
from rlprof.rundir import Here, devices, join, own_folder
from rlprof.schedule import Schedule
from rlprof.session import _current
from rlprof.session._boundary import Boundary, write_log
from rlprof.session._calls import HookThread, Overrun
from rlprof.session._context import Context
from rlprof.session._instruments import Instruments
from rlprof.session._listeners import Listeners
from rlprof.session._scribe import Scribe
from rlprof.session._session import Session
from rlprof.session._track import Track
from rlprof.types import DRIVER, Target, safe_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlprof.config import Config, Given, ToolUse
    from rlprof.rundir import RunFolder
    from rlprof.types import Led

_GRACE_S = 5
"""Extra seconds, so that a rank that waits can report what it waited for."""

_opening = threading.RLock()
"""Held while a session opens: several threads may try at once."""

_RANK = (("RANK", "WORLD_SIZE"), ("SLURM_PROCID", "SLURM_NTASKS"),
         ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"))  # fmt: skip
"""Variables of launchers for the global rank and the world size: torchrun, Slurm, Open MPI."""

_DRIVEN = ("torch", "torch-npu", "ray", "vllm", "sglang")
"""Distributions whose versions a reader of the profile will want."""


def begin(
    config: Given,
    role: str | None,
    rank: int | None,
    world_size: int | None,
    coordinates: Mapping[str, int] | None,
    *,
    led: Led | None = None,
) -> Session | None:
    """Check everything and raise; then open, and survive any failure of that. None: it is off.

    With *led*, the session joins that run, and another process opens its windows.
    """
    checked, tools = check_config(config, roles=None if role is None else [role])
    if not checked.enabled:
        return None
    role = role or _only_role(checked)
    target = _target(checked, role, rank, world_size)
    target = attrs.evolve(target, coordinates=dict(coordinates or {}))
    if led is not None:
        target = attrs.evolve(target, replica=led.replica, worker=led.worker)
    boundary = Boundary(strict=checked.strict, name=str(target))

    def failed(_: str) -> None:
        if not checked.strict:
            boundary.log("rlprof stays off in this process", logging.ERROR)

    uses = tools.get(role, ())
    with _opening:
        if _current.session is not None and target.worker is None:
            raise RlprofError(
                "rlprof.open: a session is open in this process; close it first (a process has one)"
            )
        return boundary.call("open", lambda: _open(checked, target, uses, boundary, led), failed)


def _only_role(config: Config) -> str:
    if len(config.roles) > 1:
        there = ", ".join(config.roles)
        raise ConfigError(
            [f"the config has the roles {there}; say which this process is: role=..."]
        )
    return next(iter(config.roles), DRIVER)


def _target(config: Config, role: str, rank: int | None, world_size: int | None) -> Target:
    """Return the rank of this process and the world size, as given or from its launcher."""
    by_rank, by_size = next((pair for pair in _RANK if pair[0] in os.environ), _RANK[0])
    rank = _number("rank", rank, by_rank, 0)
    world_size = _number("world_size", world_size, by_size, rank + 1)
    if rank >= world_size:
        raise ConfigError([f"rank {rank} does not exist in a world of {world_size}"])
    if config.roles and role not in config.roles and role != DRIVER and rank == 0:
        message = "role %r is not in the config (there: %s), so it writes spans only%s"
        there, hint = ", ".join(config.roles), closest(role, config.roles)
        write_log(logging.WARNING, message, role, there, hint)
    own = config.roles.get(role)
    beyond = [one for one in (own.ranks if own else None) or () if one >= world_size]
    if beyond and rank == 0:  # the config may be that of a larger job
        message = "roles.%s.ranks: rank %d does not exist in a world of %d: not recorded"
        write_log(logging.WARNING, message, role, beyond[0], world_size)
    return Target(role, rank, world_size)


def _number(name: str, given: object, variable: str, default: int) -> int:
    """Return the number *given*, else that in the environment."""
    if given is None:
        name, given = f"environment variable {variable}", os.environ.get(variable, default)
    text = str(given).strip()
    if not text.isdecimal():
        raise ConfigError([f"{name}: expected a whole number, got {given!r}"])
    return int(text)


def _open(
    config: Config, target: Target, uses: tuple[ToolUse, ...], boundary: Boundary, led: Led | None
) -> Session:
    """Join the run, start the helper thread, and let the tools warm up if a window is due."""
    header = {"rlprof": core_version(), "config": config.as_data(), "expected": config.expected()}
    here = Here.now()
    home = own_folder(Path(config.scratch_dir or tempfile.gettempdir()).absolute())
    run = _joined(config, target, header, led, home)
    name = f"{safe_name(target.role)}-{target.rank}-{safe_name(here.host)}-{here.pid}"
    if target.worker is not None:  # its process may have another session
        name += f"-replica{target.replica}-worker{target.worker}"
    scratch = home / f"{run.run_id}-{run.attempt}" / name
    quiet = Boundary(strict=False, name=str(target))  # nothing would catch it: the thread would end
    scribe = Scribe(config, run.path, name, scratch=scratch, boundary=quiet)
    manager = PluginManager("rlprof")
    named = config.listeners if led is None or not config.listeners else None
    if run.url:
        named = (*(named or ()), "bucket")
    heard = Listeners(plugins.listeners(named), manager, scribe)
    context = Context(
        target, here, run, scratch, config.limits, boundary, scribe, heard, manager,
        any_thread=led is not None and led.any_thread,
    )  # fmt: skip
    session = Session(config, context, leads=led is None)
    who = {"target": attrs.asdict(target), "here": attrs.asdict(here)}
    scribe.record("process", **who, versions=_versions(), devices=devices(here.host))
    scribe.clock()
    scribe.hurry()  # readers of the run should see this process now
    is_chosen = target.role in config.roles and config.roles[target.role].includes(target.rank)
    schedule = config.schedule(target.role) if is_chosen else Schedule()
    instruments = Instruments(target, context, config.share(target.world_size))
    track = Track(target, schedule if led is None else Schedule(), context, instruments)
    session.add(track)
    if schedule.steps or target.worker is not None:  # a worker's session exists to record
        try:
            scratch.mkdir(parents=True, exist_ok=True, mode=0o700)
            track.adopt([use for use in uses if use.kind == "tool"])
        except BaseException:  # strict, or Ctrl-C in a long import
            session.close()
            raise
    _at_exit(session)
    _current.opened.append(session)
    _current.session = _current.session or session
    session.at_end.append(partial(_leave, session))
    copied = f", and copies it to {run.url}" if run.url else ""
    boundary.log(f"writes to {run.path}{copied}")
    if run.is_new and led is None:  # it leads the run
        from rlprof.session._notice import announced

        session.notice = announced(config, run, target)
    heard.open(session)
    return session


def _leave(session: Session) -> None:
    """Drop *session*, which closes, from those of this process."""
    _current.opened.remove(session)
    if _current.session is session:
        _current.session = None


def _joined(
    config: Config, target: Target, header: Mapping[str, Any], led: Led | None, home: Path
) -> RunFolder:
    """Join the run, but do not wait for a file system that does not answer."""
    wait_s = config.limits.configure_timeout_s
    where = config.run_dir if led is None else str(led.run)
    if led is None and config.is_remote and not os.environ.get("RLPROF_RUN"):
        from rlprof.distributions import load

        bucket = load("rlprof_bucket", asked="open")
        find = partial(bucket.join, where, home, target, header, wait_s=wait_s)
    else:
        where = str(Path(where).absolute())
        env = None if led is None else {"RLPROF_RUN": where}
        find = partial(join, Path(where), target, header, env=env, wait_s=wait_s)
    thread = HookThread("rlprof-open")
    try:
        found: RunFolder = thread.call(find, timeout_s=wait_s + _GRACE_S)
    except Overrun:
        raise RunError(f"{where}: does not answer") from None
    finally:
        thread.end()
    return found


def _at_exit(session: Session) -> None:
    """Close *session* when the process ends, also if it ends without `atexit`."""
    atexit.register(session.close)
    multiprocessing = sys.modules.get("multiprocessing.util")
    if multiprocessing is not None and sys.modules["multiprocessing"].parent_process() is not None:
        # Children of multiprocessing, and so of torch.multiprocessing.spawn, leave by os._exit.
        multiprocessing.Finalize(None, session.close, exitpriority=100)


def _forget() -> None:
    """Disable the session in a forked child: its threads and files belong to the parent."""
    global _opening  # noqa: PLW0603 -- a thread that a fork does not take along may hold it
    _opening = threading.RLock()
    _current.session = None
    for session in tuple(_current.opened):
        session.forget()


os.register_at_fork(after_in_child=_forget)


def _versions() -> dict[str, str]:
    found = {}
    for name in _DRIVEN:
        with suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found
