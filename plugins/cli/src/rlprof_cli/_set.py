"""`--set KEY=VALUE`: options that override those of the config, and their faults."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlprof.config import Faults, join, load_config, use_tools
from rlprof.errors import closest
from rlprof_cli.offers import has_option
from rlprof_live import control

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rlprof.config import Config


def read_set(
    pairs: Sequence[str], names: Sequence[str], inside: Sequence[str], faults: list[str]
) -> dict[str, Any]:
    """Read `tool.key=value`, or `key=value` of the only tool or engine that has the option.

    Tools *inside* an engine count, too. Faults are added to *faults*. Return the options by tool.
    """
    import yaml

    found: dict[str, Any] = {}
    every = list(dict.fromkeys([*names, *inside]))
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not equals or not key.strip():
            faults.append(f"--set {pair}: expected KEY=VALUE, e.g. contents=[cpu,stack]")
            continue
        path = key.strip().split(".")
        if path[0] not in every or len(path) == 1:
            having = [name for name in every if has_option(name, path[0])]
            hint = closest(path[0], every) if len(path) > 1 and not having else ""
            if hint or len(having or names) != 1:
                there = ", ".join(having or every) or "none"
                which = f"name the tool or engine: NAME.{key}= (tools and engines: {there}){hint}"
                faults.append(f"--set {pair}: {which}")
                continue
            path.insert(0, (having or names)[0])
        try:
            value = yaml.safe_load(text)
        except (yaml.YAMLError, ValueError, TypeError, LookupError, AttributeError) as exc:
            faults.append(f"--set {pair}: is not valid YAML: {' '.join(str(exc).split())}")
            continue
        here: Any = found
        for part in path[:-1]:
            if not isinstance(here.get(part), dict):
                here[part] = {}
            here = here[part]
        here[path[-1]] = value  # the last --set of an option counts
    return found


def misfits(options: Mapping[str, Any], request: control.Request, config: Config) -> list[str]:
    """Check typed *options* with the plugins installed here; those of the run may be elsewhere.

    Only faults of what was typed are returned: the run judges the rest.
    """
    if not options:
        return []
    faults = Faults()
    use_tools(load_config(control.as_config(request, config)), [request.role], faults)
    role = join(join("roles", request.role), "options")
    tools = {join(role, tool) for tool in options}  # here are faults of all options together
    typed = [join(join(role, tool), key) for tool in options for key in options[tool]]
    below = tuple(f"{one}{mark}" for one in typed for mark in ".[")
    return [
        f"--set {path.removeprefix(f'{role}.')}: {message}"
        for path, messages in faults.found.items()
        if path in tools or path in typed or path.startswith(below)
        for message in messages
    ]
