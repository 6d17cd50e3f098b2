"""A look at an artifact before the manifest says that it is whole.

`rlprof ls` must not call a file whole that no reader can open. The look is cheap: it unpacks a
trace only where the plugin has not counted its bytes, and at most the first 256 MiB.
"""

from __future__ import annotations

import gzip
import re
import zlib
from typing import TYPE_CHECKING

from rlprof.rundir import open_regular

if TYPE_CHECKING:
    from pathlib import Path

    from rlprof.types import Artifact

_MOST = 256 << 20
"""Bytes of text that are unpacked: about half a second."""
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
        return _fault(artifact, file, is_whole=is_whole)
    except EOFError:
        return "is cut: its gzip has no end; close the file first" if is_whole else ""
    except (gzip.BadGzipFile, zlib.error) as exc:
        return f"is no gzip ({exc}); write a trace with gzip.open"


def _fault(artifact: Artifact, file: Path, *, is_whole: bool) -> str:
    with open_regular(file) as packed, gzip.GzipFile(fileobj=packed) as text:
        tail = text.read(_BLOCK if is_whole else 256)
        if not _BEGIN.match(tail):
            return 'does not begin with the key "rlprof"; write capture.header under it first'
        if not is_whole:
            return ""
        if artifact.text_size is not None:
            packed.seek(-4, 2)
            counted = int.from_bytes(packed.read(4), "little")
            if counted == artifact.text_size & 0xFFFFFFFF:
                return ""
            return f"is cut: its gzip does not end after {artifact.text_size} bytes of text"
        while block := text.read(_BLOCK):
            if text.tell() > _MOST:
                return ""
            tail = tail[-64:] + block
    ends = tail.rstrip().endswith(b"}")
    return "" if ends else "is cut: its JSON has no end; write all of it, or say that it is partial"
