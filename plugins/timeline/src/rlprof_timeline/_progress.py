"""The progress of a long export: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress
from typing import Any

_QUIET_S = 10
"""Seconds between two lines if there is no terminal."""
_DELAY_S = 1
"""A shorter export needs no bar."""


class Progress:
    """Shows the files and bytes done, of all."""

    def __init__(self, files: int, size: int) -> None:
        self._files, self._size = files, size
        self._begun = self._told = time.monotonic()
        self._is_quiet = os.environ.get("RLPROF_QUIET", "0") not in ("", "0")
        self._bar = _bar(files, size) if _is_seen() and not self._is_quiet else None

    def show(self, files: int, size: int) -> None:
        """Report the files and bytes done."""
        now = time.monotonic()
        if self._bar is not None:
            self._bar.postfix[0] = files
            self._bar.update(size - self._bar.n)
        elif now - self._told > _QUIET_S and not self._is_quiet:
            self._told = now
            rate = max(1, size) / (now - self._begun)
            print(
                f"timeline: {files} of {self._files} files, {size / 1e6:.0f} of "
                f"{self._size / 1e6:.0f} MB, {rate / 1e6:.0f} MB/s, "
                f"{(self._size - size) / rate:.0f} s left",
                file=sys.stderr,
                flush=True,
            )

    def close(self) -> None:
        """Leave the terminal as it was."""
        if self._bar is not None:
            self._bar.close()


def say(words: str) -> None:
    """Print a line among those of `rlprof export`."""
    with suppress(OSError):  # `| head`: the file is made anyway
        print(f"timeline: {words}", flush=True)


def _is_seen() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()  # None: closed, by `2>&-`


def _bar(files: int, size: int) -> Any:
    from tqdm import tqdm

    tqdm.monitor_interval = 0  # no thread: this process is copied for the workers
    return tqdm(
        total=size,
        desc="timeline",
        unit="B",
        unit_scale=True,
        delay=_DELAY_S,
        miniters=1,
        leave=False,
        bar_format="{desc}: {percentage:3.0f}%|{bar}| {n_fmt} of {total_fmt}, {postfix[0]} of "
        f"{files} files, {{rate_fmt}}, {{remaining}} left",
        postfix=[0],
    )
