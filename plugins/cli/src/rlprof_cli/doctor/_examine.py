"""The examination: all checks, in the order in which you would fix their findings."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from rlprof.config import Config, load_config
from rlprof.errors import ConfigError
from rlprof.rundir import read_clock
from rlprof_cli._of_verl import refuse_verl
from rlprof_cli.doctor._backends import look_at_backends
from rlprof_cli.doctor._child import ask
from rlprof_cli.doctor._clocks import kernel_status, look_at_clocks
from rlprof_cli.doctor._dry import try_tool, uses_of
from rlprof_cli.doctor._finding import Finding, advised
from rlprof_cli.doctor._interpreter import look_at_core, look_at_limits, look_at_python
from rlprof_cli.doctor._plugins import look_at_plugins
from rlprof_cli.doctor._profilers import look_at_environment, look_at_process
from rlprof_cli.doctor._report import Use
from rlprof_cli.offers import offers

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Sequence

_QUICK_S = 30.0
"""A check without a back end takes this long only if something hangs."""


def findings() -> list[Finding]:
    """Examine the calling process and its environment, within a millisecond or two.

    You may call it anywhere, also in training: it imports, starts and writes nothing.
    """
    clock = read_clock()
    return [
        *look_at_python(),
        *look_at_limits(),
        *look_at_environment(),
        *look_at_process(),
        *look_at_clocks(clock, read_clock(), kernel_status()),
    ]


def examine(
    file: str | os.PathLike[str] | None = None,
    *,
    roles: Sequence[str] | None = None,
    timeout_s: float = 120.0,
    progress: Callable[[str], None] = lambda _: None,
) -> Iterator[Finding]:
    """Yield what will and will not work here, for the config *file* or for all installed plugins.

    Each tool may take *timeout_s*; *progress* gets the name of each check as it starts.
    """
    before = read_clock()
    for look in (look_at_python, look_at_core, look_at_limits, look_at_environment):
        yield from look()
    yield from look_at_process()
    config = Config()
    uses: list[Use] = []
    names: set[str] | None = None
    if file is not None:
        progress(f"checking {file}")
        config, found = _config(file, roles)
        yield from found
        chosen = [role for role in config.roles if roles is None or role in roles]
        engines = {name for role in chosen if (name := config.roles[role].engine)}
        if config.enabled:
            uses = uses_of(config, chosen, _driving(engines))
        names = {use.tool for use in uses} | engines
    else:
        offered = [offer.name for offer in offers() if offer.kind == "tool"]
        uses = [Use(name) for name in dict.fromkeys(offered)]
    progress("trying the folders")
    found, answers = _folders(config)
    yield from found
    progress("looking at the plugins")
    yield from look_at_plugins(names, _QUICK_S)
    progress("looking at what torch loads")
    yield from look_at_backends(timeout_s)
    for use in uses if answers else ():
        yield from try_tool(use, config, timeout_s=timeout_s, progress=progress)
    if uses and not answers:
        what = "no tool was tried, because a dry window needs scratch_dir"
        yield Finding("BAD", "tools", what, "see above")
    yield from look_at_clocks(before, read_clock(), kernel_status())


def _driving(engines: set[str]) -> set[str]:
    """Choose the *engines* in which the tools of their roles record."""
    return {name for name in engines if ask("drives", timeout_s=_QUICK_S, name=name).value}


def _config(
    file: str | os.PathLike[str], roles: Sequence[str] | None
) -> tuple[Config, list[Finding]]:
    """Check the config, and its plugins in a child; its valid parts are examined in any case."""
    where = str(file)
    try:
        refuse_verl(file)
        config = load_config(file)
    except ConfigError as exc:
        return Config(), [_fault(fault) for fault in exc.faults]
    if not config.enabled:
        return config, [Finding("warn", where, "is off (enabled: false)")]
    missing = [role for role in roles or () if role not in config.roles]
    there = ", ".join(config.roles)
    found = [
        Finding("warn", where, f"has no role {role!r} (there: {there})", "it writes spans only")
        for role in missing
    ]
    answer = ask("check", timeout_s=_QUICK_S, config=where, roles=roles)
    if answer.fault:
        what = f"checking its plugins {answer.fault}"
        return config, [*found, Finding("BAD", where, what, "see its tools below")]
    faults: list[Any] = answer.value["faults"]
    found += [_fault(fault) for fault in faults] or [Finding("ok", where, "fine")]
    return config, found + [advised(who, advice) for who, advice in answer.value["advice"]]


def _fault(fault: str) -> Finding:
    where, _, what = fault.partition(": ")
    return Finding("BAD", where, what)


def _folders(config: Config) -> tuple[list[Finding], bool]:
    """Try both folders; also return whether scratch answers, because dry windows need it."""
    room = config.limits.bytes
    look = partial(ask, "folder", timeout_s=_QUICK_S)
    run_dir = look(look="look_at_run_dir", path=config.run_dir, room=room)
    scratch = look(look="look_at_scratch", path=config.scratch_dir)
    found = []
    for where, path, answer in (
        ("run_dir", config.run_dir, run_dir),
        ("scratch_dir", config.scratch_dir or "of the system", scratch),
    ):
        if answer.fault:
            what = f"trying to write there {answer.fault}"
            advice = "a run would, too: name a folder on a file system that answers"
            found.append(Finding("BAD", f"{where} {path}", what, advice))
        found += [Finding(**fields) for fields in answer.value or ()]
    return found, not scratch.fault
