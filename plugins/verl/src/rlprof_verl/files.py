"""A config of verl's in a file, as `rlprof check` reads it: no verl and no Hydra is needed.

Defaults that the file names are not read: a key that is missing has verl's default.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlprof.errors import ConfigError, one_line
from rlprof_verl._translate import OWN, SECTIONS, at, checked, translate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlprof_verl._translate import Checked, Translation

_OVERRIDE = re.compile(r"(?P<sign>\+\+|\+|~)?(?P<path>[\w.@/-]+)(=(?P<value>.*))?", re.DOTALL)
_POINTER = re.compile(r"\$\{(?:oc\.select:)?(?P<path>[\w.]+)(?:,(?P<default>[^}]*))?\}")


def read(file: str, overrides: Sequence[str] = ()) -> dict[str, Any]:
    """Return what *file* says, with Hydra's *overrides* over it; raise ConfigError."""
    import yaml

    try:
        data = yaml.safe_load(Path(file).read_text(encoding="utf-8")) or {}
    except (OSError, yaml.YAMLError, ValueError) as exc:
        raise ConfigError([f"{file}: cannot be read: {one_line(exc)}"], file) from exc
    if not isinstance(data, dict):
        raise ConfigError([f"{file}: expected keys and values"], file)
    if "roles" in data:
        words = "is a config of rlprof; overrides and --convert are for one of verl"
        raise ConfigError([f"{file}: {words}"], file)
    for text in overrides:
        found = _OVERRIDE.fullmatch(text)
        if found is None or (found["value"] is None and found["sign"] != "~"):
            raise ConfigError([f"{text}: expected an override like key.of.verl=value"], file)
        if "@" not in found["path"] and "/" not in found["path"]:  # else it chooses a file
            _put(data, found["path"], yaml.safe_load(found["value"] or "null"))
    resolved: dict[str, Any] = _resolved(data, data)
    return resolved


def lines(verl: dict[str, Any]) -> list[str]:
    """Return the overrides that *verl* lacks for rlprof to record it."""
    tool = at(verl, "global_profiler.tool")
    missing = [] if tool == "rlprof" else ["global_profiler.tool=rlprof"]
    if tool in ("npu", "torch_memory") and at(verl, f"{OWN}.tool") is None:
        missing.append(f"+{OWN}.tool={tool}")
    if not at(verl, "global_profiler.steps") and at(verl, f"{OWN}.steps") is None:
        missing.append("global_profiler.steps=[2]")
    asking = (f"{OWN}.roles", *(f"{section}.enable" for section in SECTIONS.values()))
    if not any(at(verl, key) for key in asking):
        missing.append(f"{SECTIONS['actor']}.enable=true")
    return missing


def converted(file: str, overrides: Sequence[str] = ()) -> tuple[Translation, Checked, list[str]]:
    """Translate *file* as if it had the lines that it lacks; return those, too."""
    missing = lines(read(file, overrides))
    found = translate(read(file, [*overrides, *missing]))
    return found, checked(found, file), missing


def _put(data: dict[str, Any], path: str, value: Any) -> None:
    *above, last = path.split(".")
    for key in above:
        inner = data.get(key)
        data[key] = data = inner if isinstance(inner, dict) else {}
    data[last] = value


def _resolved(node: Any, root: dict[str, Any], depth: int = 0) -> Any:
    """Follow `${a.b}` and `${oc.select:a.b,default}`; anything else stays as it is written."""
    if isinstance(node, dict):
        return {key: _resolved(value, root, depth) for key, value in node.items()}
    if isinstance(node, list):
        return [_resolved(value, root, depth) for value in node]
    found = _POINTER.fullmatch(node) if isinstance(node, str) else None
    if found is None or depth > 20:
        return node
    import yaml

    value = at(root, found["path"])
    if value is None and found["default"] is not None:
        return yaml.safe_load(found["default"])
    return _resolved(value, root, depth + 1)
