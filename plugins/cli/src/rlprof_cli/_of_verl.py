"""Configs of verl, which only `rlprof check` reads."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from rlprof.errors import ConfigError

if TYPE_CHECKING:
    import os

_KEY = re.compile(r"^(global_profiler|actor_rollout_ref|critic):", re.MULTILINE)


def is_of_verl(file: str | os.PathLike[str]) -> bool:
    """Whether *file* is a config of verl."""
    try:
        return bool(_KEY.search(Path(file).read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return False  # its reader reports it


def refuse_verl(file: str | os.PathLike[str]) -> None:
    """Raise ConfigError, which says how to convert it, if *file* is a config of verl."""
    if is_of_verl(file):
        how = f"rlprof check {file} --convert > profile.yaml writes one of rlprof"
        raise ConfigError([f"{file}: is a config of verl; {how}"], str(file))
