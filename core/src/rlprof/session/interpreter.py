"""Another Python that finds the same modules, to run a module of rlprof in.

`python -m` would look into the working directory first, where a `types.py` may lie.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, MutableMapping

_BOOT = """\
import sys
sys.path[:] = {path}
import {module} as asked
sys.exit(asked.main(sys.argv[1:]))
"""


_unrecorded: list[Callable[[MutableMapping[str, str]], object]] = []
"""Functions of the tools in this process that remove profilers from an environment."""


def unrecorded_by(plugin: type[Any]) -> None:
    """Let *plugin* leave alone the processes that start from now on."""
    if plugin.leave_alone not in _unrecorded:
        _unrecorded.append(plugin.leave_alone)


def command(module: str, *args: str) -> list[str]:
    """Return the command line that calls `main` of *module* with *args*."""
    return [sys.executable, "-c", _BOOT.format(module=module, path=ascii(_path())), *args]


def environment() -> dict[str, str]:
    """Return the environment of this process without settings of rlprof and other profilers."""
    env = {key: value for key, value in os.environ.items() if not key.startswith("RLPROF_")}
    for take_out in _unrecorded:
        less = dict(env)
        with suppress(Exception):  # code of a plugin; a recorded process is better than none
            take_out(less)
            env = less
    return env


def _path() -> list[str]:
    """Name the folders of `sys.path`; '' is the working directory."""
    return [os.path.abspath(entry) for entry in sys.path if isinstance(entry, str)]  # noqa: PTH100
