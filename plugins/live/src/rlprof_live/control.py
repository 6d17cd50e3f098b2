"""Requests to a live run: one file each in `<run>/requests/`, read by every process of the run.

Files, because all that may ask sees the run folder already: no port, no address, no token.
"""

from __future__ import annotations

import getpass
import json
import os
import secrets
import socket
import sys
import time
from typing import TYPE_CHECKING, Any

import attrs

from rlprof.config import Faults, load_config, parse_names, parse_ranks, structure
from rlprof.errors import ConfigError, RunError, shown
from rlprof.rundir import as_json, read_regular
from rlprof.schedule import Mode  # noqa: TC001 -- read when a request is structured

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from rlprof.config import Config

FOLDER = "requests"
_ASKED, CANCELLED = ".json", ".cancel"
CANCELLED_BY = "cancelled by"
"""How the error of a request begins that was taken back."""
_MOST = 64 << 10
"""Bytes of a request; each process of the run reads it, and answers with it in the manifest."""


def _at_least(least: int) -> Any:
    def validate(_: Any, __: Any, value: int) -> None:
        if not least <= value < 10**18:
            raise ValueError(f"expected at least {least}, got {shown(value)}")

    return validate


@attrs.frozen
class Request:
    """One request: record the next steps of a role that nothing else records."""

    id: str
    role: str
    next: int = attrs.field(default=1, validator=_at_least(1))
    """How many steps."""
    at: int = attrs.field(default=0, validator=_at_least(0))
    """No step before this one."""
    ranks: tuple[int, ...] | None = attrs.field(default=(0,), metadata={"parse": parse_ranks})
    """Global ranks; None: all of them."""
    phases: tuple[str, ...] | None = attrs.field(default=None, metadata={"parse": parse_names})
    """None: those of the config, or all."""
    mode: Mode | None = None
    """None: as in the config."""
    tool: tuple[str, ...] | None = attrs.field(default=None, metadata={"parse": parse_names})
    """None: those of the config."""
    options: dict[str, Any] = attrs.field(factory=dict)
    """Options by tool or engine, over those of the config."""
    by: str = ""
    """The author of the request, for readers of the manifest."""

    def as_data(self) -> dict[str, Any]:
        """Return it as plain data, for its file."""
        data = attrs.asdict(self)
        data["ranks"] = "all" if self.ranks is None else list(self.ranks)
        return {key: value for key, value in data.items() if value is not None}

    def includes(self, rank: int) -> bool:
        """Whether *rank* is asked for."""
        return self.ranks is None or rank in self.ranks


def new_id() -> str:
    """Make up a request's id; ids sort by when they were made."""
    return time.strftime("%Y%m%d-%H%M%S-") + secrets.token_hex(2)


def asker() -> str:
    """Name the author of a request."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container without a passwd entry
        user = str(os.getuid())
    return f"{user}@{socket.gethostname()}"


def write(run: Path, *requests: Request) -> Path:
    """Write *requests* into one file for every process of *run*, whole or not at all.

    A process that is asked by several of them serves all from the same step on.
    """
    data = [request.as_data() for request in requests]
    name = f"{requests[0].id}{_ASKED}"
    return _write(run / FOLDER / name, data if len(data) > 1 else data[0])


def cancel(run: Path, ids: Sequence[str], by: str) -> Path:
    """Take requests back that were written together; a target that has begun one goes on."""
    return _write(run / FOLDER / f"{ids[0]}{CANCELLED}", {"ids": list(ids), "by": by})


def _write(file: Path, data: Any) -> Path:
    folder = file.parent
    try:
        folder.mkdir(exist_ok=True)
        draft = folder / f".{file.name}.tmp"
        draft.write_text(as_json(data, indent=2), encoding="ascii")
        draft.rename(file)
    except OSError as exc:
        raise RunError(f"{folder}: cannot be written: {exc.strerror or exc}") from exc
    return file


def cancelled(file: Path) -> tuple[list[str], str]:
    """Return the ids of the requests that *file* takes back, and who did."""
    try:
        data = json.loads(read_regular(file, most=_MOST, follow=False))
        return list(map(str, data["ids"])), str(data.get("by", ""))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as exc:
        raise ConfigError([f"{file.name}: cannot be read: {exc}"], str(file)) from exc


def read(file: Path) -> list[Request]:
    """Read the requests in *file*; raise ConfigError if one of them is wrong."""
    try:
        data = json.loads(read_regular(file, most=_MOST, follow=False))
    except OSError as exc:
        why = exc.strerror or exc
        raise ConfigError([f"{file.name}: cannot be read: {why}"], str(file)) from exc
    except (ValueError, RecursionError) as exc:
        raise ConfigError([f"{file.name}: cannot be read: {exc}"], str(file)) from exc
    faults = Faults()
    asked = data if data and isinstance(data, list) else [data]
    requests = [structure(Request, one, path="", faults=faults) for one in asked]
    if faults:
        lines = [
            f"{file.name}: {path + ': ' if path else ''}{message}"
            for path, messages in faults.found.items()
            for message in messages
        ]
        raise ConfigError(lines, str(file))
    return requests


def waiting(run: Path, seen: set[str]) -> Iterator[Path]:
    """List the files that are not in *seen* yet, oldest first, and add them to it.

    One that takes a request back, `.cancel`, comes before the request.
    """
    try:
        names = [file.name for file in (run / FOLDER).iterdir()]
    except OSError:  # nobody has asked yet
        return
    for name in sorted(names):
        is_one = name.endswith((_ASKED, CANCELLED)) and not name.startswith(".")
        if is_one and name not in seen:
            seen.add(name)
            yield run / FOLDER / name


def as_config(request: Request, config: Config) -> Mapping[str, Any]:
    """Write *request* as a config, so that it is checked like one."""
    mode = request.mode or config.mode
    role = config.as_data()["roles"].get(request.role, {})
    tools = role.get("tool") if request.tool is None else request.tool
    own: dict[str, Any] = {"options": dict(request.options)}
    if tools is not None:
        own["tool"] = list(tools)
    if role.get("engine") is not None:
        own["engine"] = role["engine"]
    used = {*(config.tool if tools is None else tools), role.get("engine")}
    for name, options in (role.get("options") or {}).items():
        if name in used:
            given = own["options"].get(name)
            own["options"][name] = {**options, **given} if isinstance(given, dict) else options
    phases = request.phases
    if phases is None and mode == "discrete":
        phases = role.get("phases")
    if phases is not None:
        own["phases"] = list(phases)
    kept = {name: options for name, options in config.tools.items() if name in used}
    engines = {name: options for name, options in config.engines.items() if name in used}
    return {
        "mode": mode,
        "steps": [0],
        "tool": list(config.tool),
        "roles": {request.role: own},
        "tools": kept,
        "engines": engines,
    }


def check(request: Request, config: Config) -> None:
    """Check all that needs no plugins; raise ConfigError with every fault."""
    every_step = any(one.step == 1 and one.stop >= sys.maxsize for one in config.steps.ranges)
    if request.role in config.roles and every_step and not config.join_steps:
        raise ConfigError(
            [f"steps {config.steps}: the config records every step, none is left to ask for"]
        )
    load_config(as_config(request, config))
