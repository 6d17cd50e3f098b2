"""A config of verl's given to `rlprof check`: rlprof-verl reads it, where that is installed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlprof.errors import ConfigError

if TYPE_CHECKING:
    import argparse

_KEY = re.compile(r"^(global_profiler|actor_rollout_ref|critic):", re.MULTILINE)


def is_verl(args: argparse.Namespace) -> bool:
    """Whether the file is verl's, or options were given that only such a file has."""
    if args.overrides or args.convert:
        return True
    try:
        return bool(_KEY.search(Path(args.file).read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return False  # whoever reads it says so


def reader() -> Any:
    """Return the module that reads it."""
    try:
        from rlprof_verl import files
    except ImportError:
        words = "a config of verl's is read by rlprof-verl; pip install rlprof-verl"
        raise ConfigError([words]) from None
    return files
