"""Where a configuration comes from: a mapping, a YAML file, an OmegaConf node."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from rlprof.errors import ConfigError

if TYPE_CHECKING:
    import os

    from rlprof.config._structure import Faults

_CALLED = "config"


@attrs.frozen
class Source:
    """Plain data, and where each part of them stands."""

    data: Any
    name: str = _CALLED
    lines: Mapping[str, int] = attrs.field(factory=dict)
    """Path of a key → its line in the file."""
    faults: tuple[tuple[str, str], ...] = ()
    """Path and message of what is wrong already."""

    def line(self, path: str) -> int | None:
        """Return the line of *path*, or of the nearest thing around it."""
        around = path
        while around and around not in self.lines:
            around = around.rpartition("[" if around.endswith("]") else ".")[0]
        return self.lines.get(around)

    def locate(self, path: str) -> str:
        """Name the place of *path*, with its line where there is one."""
        line = self.line(path)
        place = f"{self.name}:{line}" if line else self.name
        return f"{place}: {path}" if path else place


def raise_faults(faults: Faults, source: Source) -> None:
    """Raise ConfigError if there are any, each with its place, in the order of the file."""
    if faults:
        places = [(source.line(path) or 0, path) for path in faults.found]
        lines = [
            f"{source.locate(path)}: {message}"
            for _, path in sorted(places, key=lambda place: place[0])
            for message in faults.found[path]
        ]
        raise ConfigError(lines, source.name)


def read_source(config: Mapping[str, Any] | str | os.PathLike[str]) -> Source:
    """Turn *config* into plain data; raise ConfigError if it cannot be read at all."""
    if type(config).__module__.partition(".")[0] == "omegaconf":
        return _from_omegaconf(config)
    if isinstance(config, Mapping):
        return Source(config)
    if isinstance(config, (str, Path)) or hasattr(config, "__fspath__"):
        return _from_yaml(Path(config))
    what = type(config).__name__
    raise ConfigError([f"expected a mapping, a YAML file or an OmegaConf node, got {what}"])


def _from_omegaconf(config: Any) -> Source:
    """Resolve the node with the library it came from, which therefore is imported already."""
    omegaconf = sys.modules["omegaconf"]
    try:
        missing = sorted(omegaconf.OmegaConf.missing_keys(config))
        data = omegaconf.OmegaConf.to_container(config, resolve=True)
    except omegaconf.errors.OmegaConfBaseException as exc:
        raise ConfigError([" ".join(str(exc).split())]) from exc
    return Source(data, faults=tuple((key, "is missing (???)") for key in missing))


def _from_yaml(file: Path) -> Source:
    import yaml

    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ConfigError(["no such file; give the path of a YAML file"], str(file)) from None
    except (OSError, ValueError) as exc:
        raise ConfigError([f"cannot be read: {exc}"], str(file)) from exc
    loader = yaml.SafeLoader(text)
    lines: dict[str, int] = {}
    faults: list[tuple[str, str]] = []
    try:
        node = loader.get_single_node()
        if node is not None:
            _walk(node, "", lines, faults, seen=set())
        data = {} if node is None else loader.construct_document(node)
    except (yaml.YAMLError, ValueError, RecursionError, TypeError) as exc:
        mark = getattr(exc, "problem_mark", None)
        place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        what = getattr(exc, "problem", None) or str(exc) or type(exc).__name__
        raise ConfigError([f"{place}is no YAML: {what}"], str(file)) from exc
    finally:
        loader.dispose()
    return Source(data, str(file), lines, tuple(faults))


def _walk(
    node: Any, path: str, lines: dict[str, int], faults: list[tuple[str, str]], seen: set[int]
) -> None:
    """Note the line of every key, and the keys given twice, which YAML readers pass over."""
    if id(node) in seen:
        return
    seen.add(id(node))
    if node.id == "sequence":
        for index, item in enumerate(node.value):
            here = f"{path}[{index}]"
            lines[here] = item.start_mark.line + 1
            _walk(item, here, lines, faults, seen)
    if node.id == "mapping":
        given: dict[str, int] = {}
        for key, value in node.value:
            name, line = str(key.value), key.start_mark.line + 1
            here = f"{path}.{name}" if path else name
            if name in given and name != "<<":
                faults.append((here, f"is given twice, on lines {given[name]} and {line}"))
            given[name] = lines[here] = line
            _walk(value, here, lines, faults, seen)
