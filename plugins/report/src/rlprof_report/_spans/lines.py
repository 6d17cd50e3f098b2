"""Decodes a file of spans a megabyte at a time; skips and counts lines that are not spans."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

import msgspec

from rlprof.rundir import open_regular

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_WINDOW = 1 << 20
_LONGEST = 16 << 20
"""Bytes of a line; rlprof writes far shorter ones."""

_Whole = Annotated[int, msgspec.Meta(ge=-(1 << 61), le=1 << 61)]
"""So that sums and differences of two stay within 64 bits."""


class Attributes(msgspec.Struct, gc=False):
    """The attributes of a span that figures need; users may note any value under these names."""

    source: Any = None
    trajectory: Any = None
    tokens: Any = None
    replica: Any = None
    tool: Any = None
    version: Any = None
    queued_s: Any = None
    first_token_s: Any = None
    preemptions: Any = None
    error: Any = None


class Line(msgspec.Struct, gc=False):
    """One span as its line has it."""

    kind: Literal["step", "phase", "span"]
    name: str
    t0: _Whole
    t1: _Whole
    id: _Whole = 0
    step: _Whole | None = None
    thread: int = 0
    parent: _Whole | None = None
    occurrence: _Whole = 0
    attributes: Attributes | None = None


class FleetLine(msgspec.Struct, gc=False):
    """A call of a member that the driver of its fleet wrote, by the wall clock of its host."""

    of: str
    kind: Literal["phase"]
    name: str
    w0: _Whole
    w1: _Whole
    id: _Whole = 0
    step: _Whole | None = None
    occurrence: _Whole = 0


L = TypeVar("L", Line, FleetLine)


def read_spans(file: Path, shape: type[L], problems: list[str]) -> Iterator[list[L]]:
    """Read the spans in *file*, some thousand at once; report skipped lines to *problems*."""
    many, one = msgspec.json.Decoder(list[shape]), msgspec.json.Decoder(shape)  # type: ignore[valid-type]
    skipped = 0
    try:
        for lines in _windows(file):
            try:
                yield many.decode(b"[" + lines.replace(b"\n", b",") + b"]")
            except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
                good, bad = _one_by_one(lines, one)
                skipped += bad
                yield good
    except FileNotFoundError:
        return
    except OSError as exc:
        problems.append(f"spans/{file.name}: cannot be read: {exc.strerror or exc}")
    if skipped:
        lines_word = "line is no span and was" if skipped == 1 else "lines are no spans and were"
        problems.append(f"spans/{file.name}: {skipped} {lines_word} skipped")


def _windows(file: Path) -> Iterator[bytes]:
    """Cut the file into stretches of whole lines; `lost_spans` tells of a last line without end."""
    rest = b""
    with open_regular(file) as stream:
        while block := stream.read(_WINDOW):
            data = rest + block
            end = data.rfind(b"\n")
            rest = data[end + 1 :]
            if end > 0:
                yield data[:end]
            if len(rest) > _LONGEST:
                rest = b"{"  # its end will be no span: counted there


def _one_by_one(lines: bytes, decoder: Any) -> tuple[list[Any], int]:
    good, bad = [], 0
    for line in lines.split(b"\n"):
        if not line.strip():
            continue
        try:
            good.append(decoder.decode(line))
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
            bad += 1
    return good, bad
