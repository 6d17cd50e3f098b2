"""Dry windows: every tool records one window now, in a child process with a session.

It uses a real session rather than calling hooks by hand, so that threads, limits, the helper
process of `export` and the run folder are those of a run.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from rlprof.errors import RunError
from rlprof_cli.doctor._child import ask
from rlprof_cli.doctor._finding import Finding
from rlprof_cli.doctor._folders import borrowed
from rlprof_cli.doctor._report import Use, report
from rlprof_run import read

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from rlprof.config import Config
    from rlprof_run import CaptureResult

_ANY_ROLE = "actor"


def uses_of(config: Config, roles: list[str], driving: Collection[str] = ()) -> list[Use]:
    """List the tools of *roles*; roles with the same options share one entry.

    The list includes tools that record inside one of the engines *driving*: these run alone, too.
    """
    found: list[Use] = []
    for role in roles:
        is_inside = config.roles[role].engine in driving
        for tool in config.tools_inside(role) if is_inside else config.tools_of(role):
            asked = {**config.tools.get(tool, {}), **config.roles[role].options.get(tool, {})}
            same = next((use for use in found if (use.tool, use.asked) == (tool, asked)), None)
            if same is None:
                found.append(Use(tool, asked, (role,)))
            else:
                found[found.index(same)] = attrs.evolve(same, roles=(*same.roles, role))
    return found


def try_tool(
    use: Use, config: Config, *, timeout_s: float, progress: Callable[[str], None]
) -> list[Finding]:
    """Load the tool, ask for its `Launch`, and let it record a window."""
    role = next(iter(use.roles), _ANY_ROLE)
    dry: dict[str, Any] = {"tool": use.tool, "roles": {role: {}}, "tools": {use.tool: use.asked}}
    progress(f"{use.where}: loading it")
    checked = ask("check", timeout_s=timeout_s, config=dry | {"steps": [1]}, roles=None)
    if checked.fault:
        what = f"importing it, or its configure at launch, {checked.fault}"
        return [Finding("BAD", use.where, what, "leave it out of the run, or repair it")]
    if checked.value["faults"]:  # with a config, the check of the config has reported this
        return [] if use.roles else [_unfit(use, fault) for fault in checked.value["faults"]]
    progress(f"{use.where}: a dry window, {timeout_s:g} s at most")
    base = Path(config.scratch_dir or tempfile.gettempdir()).absolute()
    launch = checked.value["launches"][role]
    try:
        with borrowed(base) as folder:
            run = folder / "run"
            answer = ask(
                "window",
                timeout_s=timeout_s, prefix=launch["argv_prefix"], marked=str(folder),
                env={**launch["env"], "RLPROF_RUN": str(run)},
                config=dry | _places(folder, config, timeout_s), role=role, tool=use.tool,
            )  # fmt: skip
            return report(use, answer, _capture(run), config.limits)
    except OSError as exc:
        what = f"was not tried, because its dry window needs a folder: {exc}"
        return [Finding("BAD", use.where, what, "see scratch_dir")]


def _unfit(use: Use, fault: str) -> Finding:
    """Rate a fault with the default options: a plugin that does not load can never work."""
    path, _, what = fault.removeprefix("config: ").partition(": ")
    if path == "tool":
        return Finding("BAD", use.where, what)
    return Finding("warn", use.where, f"refuses its default options: {path}: {what}")


def _places(folder: Path, config: Config, timeout_s: float) -> dict[str, Any]:
    """Return the config of a dry window: its folder, its step and its limits."""
    limits = attrs.asdict(config.limits)
    # Limit the helper process to our time, or it would outlive its parent.
    limits["export_timeout_s"] = min(limits["export_timeout_s"], timeout_s / 2)
    scratch = str(folder / "scratch")
    places = {"run_dir": str(folder), "scratch_dir": scratch}
    return {**places, "steps": [1], "limits": limits}


def _capture(run: Path) -> CaptureResult | None:
    """Read the outcome of the window, however its process ended."""
    try:
        return next(iter(read(run).captures), None)
    except RunError:
        return None
