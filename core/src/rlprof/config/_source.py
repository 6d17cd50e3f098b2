"""Where a configuration comes from: a mapping, a YAML file, an OmegaConf node."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rlprof.config._structure import Faults, join
from rlprof.errors import ConfigError, closest, one_line, raised

ALWAYS = "always"
"""The word in place of a file: spans and counters of every process, and no window."""

_YAML_RAISES = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError)
"""Other exceptions that PyYAML raises for `!!bool x`, `!!int ""`, `!!timestamp x`, …"""


def read_source(config: Any) -> tuple[Any, Faults]:
    """Turn *config* into plain data, and report its faults so far.

    Raise ConfigError if it cannot be read at all.
    """
    if type(config).__module__.partition(".")[0] == "omegaconf":
        return _from_omegaconf(config)
    if isinstance(config, Mapping):
        return config, Faults()
    if config == ALWAYS:
        return {"tool": "none"}, Faults(ALWAYS)
    if isinstance(config, (str, os.PathLike)):
        return _from_yaml(Path(config))
    what = type(config).__name__
    raise ConfigError([f"config: expected a mapping, a YAML file or an OmegaConf node, got {what}"])


def _from_omegaconf(config: Any) -> tuple[Any, Faults]:
    omegaconf = sys.modules["omegaconf"]
    try:
        data = omegaconf.OmegaConf.to_container(config, resolve=True, throw_on_missing=True)
    except omegaconf.errors.OmegaConfBaseException as exc:
        where = f"config: {exc.full_key}" if exc.full_key else "config"
        what = one_line(str(exc).partition("\n")[0])  # below it stand path and type
        raise ConfigError([f"{where}: {what}; repair it or write the value itself"]) from exc
    except RecursionError:
        raise ConfigError(["config: contains itself by an interpolation; repair it"]) from None
    return data, Faults()


def _from_yaml(file: Path) -> tuple[Any, Faults]:
    import yaml

    name = str(file)
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        who = " (RLPROF_CONFIG names it)" if os.environ.get("RLPROF_CONFIG") == name else ""
        where = str(file.absolute())
        hint = closest(name.lower(), (ALWAYS,)) or "; give the path of a YAML file"
        message = f"{where}: no such file{who}{hint}"
        raise ConfigError([message], where) from None
    except (OSError, ValueError) as exc:
        what = one_line(getattr(exc, "strerror", None) or exc)
        raise ConfigError([f"{name}: cannot be read: {what}"], name) from exc
    faults = Faults(name)
    try:
        loader = yaml.SafeLoader(text)
        node = loader.get_single_node()
        if node is None:
            return {}, faults
        _walk(node, "", faults)
        return loader.construct_document(node), faults
    except yaml.MarkedYAMLError as exc:
        mark = exc.problem_mark
        place = f"{name}:{mark.line + 1}:{mark.column + 1}" if mark else name
        hint = "; check the indentation" if "<block end>" in str(exc.problem) else ""
        what = one_line(f"{exc.context or ''} {exc.problem}") + hint
        raise ConfigError([f"{place}: is not YAML: {what}"], name) from exc
    except (yaml.YAMLError, *_YAML_RAISES) as exc:
        raise ConfigError([f"{name}: is not YAML: {raised(exc)}"], name) from exc


def _walk(node: Any, path: str, faults: Faults) -> None:
    """Note the line of every key, and duplicate keys, which YAML readers ignore."""
    if node.id == "sequence":
        for index, item in enumerate(node.value):
            here = f"{path}[{index}]"
            faults.lines[here] = item.start_mark.line + 1
            _walk(item, here, faults)
    if node.id == "mapping":
        given: dict[str, int] = {}
        for key, value in node.value:
            name, line = str(key.value), key.start_mark.line + 1
            here = join(path, name)
            if name in given and name != "<<":
                faults.add(here, f"is given twice, on lines {given[name]} and {line}; keep one")
            given[name] = faults.lines[here] = line
            _walk(value, here, faults)
