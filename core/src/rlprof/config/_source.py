"""Where a configuration comes from: a mapping, a YAML file, an OmegaConf node."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from rlprof.config._structure import DEEPEST, join
from rlprof.errors import ConfigError, one_line, shown

if TYPE_CHECKING:
    from rlprof.config._structure import Faults

_CALLED = "config"
ALWAYS = "always"
"""The word in place of a file: spans and counters of every process, and no window."""

_YAML_RAISES = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError)
"""What PyYAML raises, beside its own errors, for `!!bool x`, `!!int ""`, `!!timestamp x`, …"""


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


def error_of(faults: Faults, source: Source) -> ConfigError:
    """Make one error of all *faults*, each with its place, in the order of the file."""
    places = [(source.line(path) or 0, path) for path in faults.found]
    lines = [
        f"{source.locate(path)}: {message}"
        for _, path in sorted(places, key=lambda place: place[0])
        for message in faults.found[path]
    ]
    return ConfigError(lines, source.name)


def raise_faults(faults: Faults, source: Source) -> None:
    """Raise ConfigError if there are any."""
    if faults:
        raise error_of(faults, source)


def read_source(config: Mapping[str, Any] | str | os.PathLike[str]) -> Source:
    """Turn *config* into plain data; raise ConfigError if it cannot be read at all."""
    if type(config).__module__.partition(".")[0] == "omegaconf":
        return _from_omegaconf(config)
    if isinstance(config, Mapping):
        return Source(config)
    if config == ALWAYS:
        return Source({"tool": "none"}, ALWAYS)
    if isinstance(config, (str, Path)) or hasattr(config, "__fspath__"):
        return _from_yaml(Path(config))
    what = type(config).__name__
    raise ConfigError(
        [f"{_CALLED}: expected a mapping, a YAML file or an OmegaConf node, got {what}"]
    )


def _from_omegaconf(config: Any) -> Source:
    """Resolve the node with the library it came from, which therefore is imported already."""
    omegaconf = sys.modules["omegaconf"]
    faults: list[tuple[str, str]] = []
    data = omegaconf.OmegaConf.to_container(config, resolve=False)
    if isinstance(data, dict):  # else it is None or missing as a whole, or a list
        data = _resolved(config, "", faults, omegaconf)
    return Source(data, faults=tuple(faults))


def _resolved(node: Any, path: str, faults: list[tuple[str, str]], omegaconf: Any) -> Any:
    """Turn *node* into plain data; what is missing or points to nothing is a fault and left out.

    Key by key, for `OmegaConf.to_container` stops at the first.
    """
    is_list = isinstance(node, omegaconf.ListConfig)
    if not is_list and not isinstance(node, omegaconf.DictConfig):
        return node
    if path.count(".") + path.count("[") > DEEPEST:
        faults.append((path, "is nested too deep; does it contain itself?"))
        return None
    made = []
    for key in range(len(node)) if is_list else node:
        here = f"{path}[{key}]" if is_list else join(path, key)
        try:
            made.append((key, _resolved(node[key], here, faults, omegaconf)))
        except omegaconf.errors.MissingMandatoryValue:
            faults.append((here, "is missing (???); give it a value"))
        except omegaconf.errors.OmegaConfBaseException as exc:
            written = omegaconf.OmegaConf.to_container(node, resolve=False)[key]
            what = one_line(str(exc).partition("\n")[0])  # below it stand path and type
            faults.append((here, f"{shown(written)}: {what}; repair it or write the value itself"))
    return [value for _, value in made] if is_list else dict(made)


def _from_yaml(file: Path) -> Source:
    import yaml

    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        message = f"{file}: no such file{_tried(file)}; give the path of a YAML file"
        raise ConfigError([message], str(file)) from None
    except (OSError, ValueError) as exc:
        what = one_line(getattr(exc, "strerror", None) or exc)
        raise ConfigError([f"{file}: cannot be read: {what}"], str(file)) from exc
    lines: dict[str, int] = {}
    faults: list[tuple[str, str]] = []
    try:
        loader = yaml.SafeLoader(text)
        node = loader.get_single_node()
        if node is not None:
            _walk(node, "", lines, faults, seen=set())
        data = {} if node is None else loader.construct_document(node)
    except (yaml.YAMLError, *_YAML_RAISES) as exc:
        mark = getattr(exc, "problem_mark", None)
        place = f"{file}:{mark.line + 1}:{mark.column + 1}" if mark else str(file)
        words = str(exc) if isinstance(exc, yaml.YAMLError) else f"{type(exc).__name__}: {exc}"
        words = getattr(exc, "problem", None) or words
        what = one_line(f"{getattr(exc, 'context', None) or ''} {words}")
        raise ConfigError([f"{place}: is not YAML: {what}"], str(file)) from exc
    return Source(data, str(file), lines, tuple(faults))


def _tried(file: Path) -> str:
    """Say who named *file*, and where it was looked for, unless both are plain to see."""
    named = os.environ.get("RLPROF_CONFIG") == str(file)
    said = [
        *(["RLPROF_CONFIG names it"] if named else []),
        *([] if file.is_absolute() else [f"looked for {file.absolute()}"]),
    ]
    return f" ({', '.join(said)})" if said else ""


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
        given: dict[tuple[str, str], int] = {}
        for key, value in node.value:
            name, line = str(key.value), key.start_mark.line + 1
            here, before = join(path, name), given.get((key.tag, name))
            if before is not None and name != "<<":
                faults.append((here, f"is given twice, on lines {before} and {line}; keep one"))
            given[key.tag, name] = lines[here] = line
            _walk(value, here, lines, faults, seen)
