"""A config of verl for `rlprof check`: rlprof-verl reads it, if it is installed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlprof.errors import ConfigError

if TYPE_CHECKING:
    import argparse

_KEY = re.compile(r"^(global_profiler|actor_rollout_ref|critic):", re.MULTILINE)


def is_verl(args: argparse.Namespace) -> bool:
    """Whether the file is a config of verl, or was given with options for such a config."""
    if args.overrides or args.convert:
        return True
    try:
        return bool(_KEY.search(Path(args.file).read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return False  # its reader reports it


def reader() -> Any:
    """Return the module that reads such a config."""
    try:
        from rlprof_verl import files
    except ImportError:
        words = "rlprof-verl reads configs of verl; pip install rlprof-verl"
        raise ConfigError([words]) from None
    return files
