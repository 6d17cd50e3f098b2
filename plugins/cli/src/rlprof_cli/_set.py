"""`--set KEY=VALUE`: options that override those of the config, and their faults.

A fault names the argument as it was typed, not its place in a config.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

from rlprof.config import Faults, join, load_config, use_tools
from rlprof.errors import closest
from rlprof_cli.offers import has_option
from rlprof_live import control

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlprof.config import Config


@attrs.frozen
class Settings:
    """The options that were typed, by tool."""

    options: dict[str, Any] = attrs.field(factory=dict)
    paths: dict[str, tuple[str, ...]] = attrs.field(factory=dict)
    """The typed argument → the tool, and the key among its options."""


def read_set(
    pairs: Sequence[str], names: Sequence[str], inside: Sequence[str], faults: list[str]
) -> Settings:
    """Read `tool.key=value`, or `key=value` of the only tool or engine that has the option.

    Tools *inside* an engine count, too. Faults are added to *faults*.
    """
    import yaml

    found, every = Settings(), list(dict.fromkeys([*names, *inside]))
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not equals or not key.strip():
            faults.append(f"--set {pair}: expected KEY=VALUE, e.g. contents=[cpu,stack]")
            continue
        path = key.strip().split(".")
        if path[0] not in every or len(path) == 1:
            having = [name for name in every if has_option(name, path[0])]
            if len(having or names) != 1:
                there = ", ".join(having or every) or "none"
                hint = closest(path[0], every) if len(path) > 1 else ""
                which = f"name the tool or engine: NAME.{key}= (tools and engines: {there}){hint}"
                faults.append(f"--set {pair}: {which}")
                continue
            path.insert(0, (having or names)[0])
        try:
            value = yaml.safe_load(text)
        except (yaml.YAMLError, ValueError, TypeError, LookupError, AttributeError) as exc:
            faults.append(f"--set {pair}: is not valid YAML: {' '.join(str(exc).split())}")
            continue
        here: Any = found.options
        for part in path[:-1]:
            here = here.setdefault(part, {})
            if not isinstance(here, dict):
                break
        if not isinstance(here, dict):
            faults.append(f"--set {pair}: another --set gave {'.'.join(path[:-1])} a value")
        else:
            here[path[-1]] = value
            found.paths[pair] = tuple(path)
    return found


def misfits(settings: Settings, request: control.Request, config: Config) -> list[str]:
    """Check the options with the plugins installed here; those of the run may be elsewhere.

    Only faults of what was typed are returned: the run judges the rest.
    """
    faults = Faults()
    if settings.paths:
        use_tools(load_config(control.as_config(request, config)), [request.role], faults)
    options = join(join("roles", request.role), "options")
    found = []
    for path, messages in faults.found.items():
        typed = [pair for pair, parts in settings.paths.items() if _is_at(path, options, parts)]
        if not typed:  # all together, or none of them
            typed = [
                pair for pair, parts in settings.paths.items() if path == join(options, parts[0])
            ]
        for message in messages if typed else ():
            hint = "" if "did you mean" in message else _hint(settings, typed)
            found.append(f"--set {' '.join(typed)}: {message}{hint}")
    return found


def _is_at(path: str, options: str, parts: Sequence[str]) -> bool:
    """Whether a fault at *path* is one of the option *parts*, or of what it is in."""
    here = join(options, parts[0])
    for part in parts[1:]:
        here = join(here, part)
        if path == here:
            return True
    return path.startswith((f"{here}.", f"{here}["))


def _hint(settings: Settings, typed: Sequence[str]) -> str:
    """Suggest the tool: if there is only one, `torhc.level` was read as a key of it."""
    word, dot, _ = typed[0].partition("=")[0].strip().partition(".")
    tool = settings.paths[typed[0]][0]
    return closest(word, [tool]) if dot and word != tool else ""
