"""Checks an artifact before the manifest says that it is whole.

`rlprof ls` must not call a file whole that no reader can open. The check is cheap if the plugin
counted the bytes of its trace; only other traces are unpacked.
"""

from __future__ import annotations

import gzip
import re
import zlib
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from rlprof.types import Artifact

_BLOCK = 1 << 20
_BEGIN = re.compile(rb'\s*\{\s*"rlprof"\s*:')


def fault_of(artifact: Artifact, file: Path) -> str:
    """Say what is wrong with *file* and what to do; empty if nothing was found.

    A partial artifact may be empty, and its trace may be cut.
    """
    is_whole = artifact.status == "whole"
    if not file.stat().st_size:
        return 'is empty; write it, or return it with status="partial"' if is_whole else ""
    if artifact.kind != "trace":
        return ""
    try:
        with file.open("rb") as packed, gzip.GzipFile(fileobj=packed) as text:
            tail = text.read(_BLOCK if is_whole else 256)
            if not _BEGIN.match(tail):
                return 'does not begin with the key "rlprof"; write capture.header under it first'
            if not is_whole:
                return ""
            if artifact.text_size is not None:
                packed.seek(-4, 2)
                counted = int.from_bytes(packed.read(4), "little")
                size, is_cut = artifact.text_size, counted != artifact.text_size & 0xFFFFFFFF
                return f"is cut: its gzip does not end after {size} bytes of text" if is_cut else ""
            for block in iter(partial(text.read, _BLOCK), b""):
                tail = tail[-64:] + block
    except EOFError:
        return "is cut: its gzip has no end; close the file first" if is_whole else ""
    except (gzip.BadGzipFile, zlib.error) as exc:
        return f"is not gzip ({exc}); write a trace with gzip.open"
    ends = tail.rstrip().endswith(b"}")
    return "" if ends else "is cut: its JSON has no end; write all of it, or mark it as partial"
