"""Writes an archive for Perfetto 58 and later: the traces as they lie, and how they stand in time.

Perfetto's manifest (google/perfetto: docs/reference/perfetto-manifest.md, and what reads it,
src/trace_processor/plugins/perfetto_manifest/perfetto_manifest_reader.cc) says of each member which
machine it is of, so that equal process numbers are told apart, and how far its times are from those
of another member. JSON has a clock of its own in each file, so that other member is named without a
clock, and the first to be read (by name) has the clock of the whole: that is ours.

It is a ZIP, for a member of a TAR that is gzipped is an archive of its own to Perfetto, which can
have neither machine nor offset (forwarding_trace_parser.cc: it refuses the whole). What is deflated
in a ZIP is no such thing, and gzip's bytes are just that.
"""

from __future__ import annotations

import json
import logging
import re
import tempfile
from contextlib import closing
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from rlprof.errors import one_line
from rlprof_timeline._clock import clock_of
from rlprof_timeline._content import move
from rlprof_timeline._gzip import packed
from rlprof_timeline._merge import Moved, Part
from rlprof_timeline._opened import UnreadableError
from rlprof_timeline._text import TraceText
from rlprof_timeline._write import before, write_own
from rlprof_timeline._zip import Zip

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlprof_timeline._clock import Clock
    from rlprof_timeline._source import Plan, Trace
    from rlprof_timeline._zip import Content

log = logging.getLogger("rlprof.timeline")

ARCHIVE = "timeline.perfetto-58.zip"
_MANIFEST = "perfetto_manifest.json"
_OWN = "rlprof.json"
"""Before `traces/`, so that it is the first that Perfetto reads."""
_EARLY_NS = 3600 * 10**9
"""The first event of a trace is not known, and what is before time zero is dropped. Perfetto shows
nothing of the time before the first event."""
_LONGEST = 99
_PEEK = 1 << 13
_FARTHEST_NS = 1 << 62
_SUFFIX = re.compile(r"(?:\.json|\.gz)+$", re.IGNORECASE)


@attrs.frozen
class _Member:
    path: str
    machine: str
    clock: Clock
    offset_ns: int
    """What to add to its times, on the clock of our own member."""


def write_archive(plan: Plan, out: Path) -> Path:
    """Write *plan* into *out* without reading an event; the file is whole or not there."""
    if plan.from_ns is not None or plan.until_ns is not None:
        log.warning(
            "an archive has whole traces: --from and --until leave out windows and spans, but "
            "nothing inside a trace; they do without --archive"
        )
    with tempfile.TemporaryDirectory(prefix=f".{ARCHIVE}.", dir=out) as folder:
        zero_ns = before(plan, ()) - _EARLY_NS
        own, draft = Path(folder) / "own.gz", Path(folder) / ARCHIVE
        with draft.open("wb") as file:
            archive = Zip(file)
            members, looked = _move_all(plan, zero_ns, archive)
            with own.open("wb") as raw, packed(raw) as stream:
                write_own(plan, [Part(own, {}, tuple(looked))], zero_ns, stream.write)
                stream.write(b"\n]}\n")
            move(own, archive, _OWN, own.stat().st_size)
            archive.add(_MANIFEST, _as_it_is(_manifest(plan, members, looked, zero_ns)))
            archive.end()
        log.warning(
            "%s: for Perfetto 58 and later; an older one opens it without a word, and shows all "
            "ranks on top of each other at wrong times",
            ARCHIVE,
        )
        return draft.replace(out / ARCHIVE)


def _as_it_is(text: bytes) -> Content:
    yield text
    return None


def _move_all(plan: Plan, zero_ns: int, archive: Zip) -> tuple[list[_Member], list[Moved]]:
    """Move each trace whose place in time is known and that Perfetto can read."""
    members, looked = [], []
    taken: set[str] = set()
    for source in plan.sources:
        for group in source.groups:
            title = one_line(group.title, longest=300) or "trace"
            machine = _once(taken, title.__add__)
            for trace in group.traces:
                one = Moved(None, clock=trace.clock)
                looked.append(one)
                path = _once(taken, partial(_name, _stem(trace)))
                try:
                    clock = one.clock = trace.clock or _clock(trace.path)
                    offset_ns = _offset_ns(trace, clock, zero_ns)
                    move(trace.path, archive, path, trace.size, trace.text_size)
                except UnreadableError as exc:
                    one.left_out = str(exc)
                else:
                    members.append(_Member(path, machine, clock, offset_ns))
    return members, looked


def _clock(path: Path) -> Clock:
    text = TraceText(path)
    with closing(text.batches(_PEEK)) as batches:
        next(batches, b"")
    return clock_of(text.head)


def _offset_ns(trace: Trace, clock: Clock, zero_ns: int) -> int:
    offset_ns = clock.epoch_ns + trace.shift_ns - zero_ns
    if abs(offset_ns) > _FARTHEST_NS:
        raise UnreadableError("its clock is centuries from that of the others")
    return offset_ns


def _manifest(plan: Plan, members: list[_Member], looked: list[Moved], zero_ns: int) -> bytes:
    files: list[dict[str, Any]] = [{"path": _OWN}]
    about = {**plan.about, "epoch_ns": zero_ns, "needs": "Perfetto 58 or later"}
    bounds = [member.clock.error_ns for member in members if member.clock.error_ns is not None]
    if bounds:
        about["error_ns"] = max(bounds)
    for member in members:
        clocks = {"sync_to": {"file": _OWN}, "offset_ns": member.offset_ns}
        machine = {"name": member.machine}
        files.append({"path": member.path, "machine": machine, "clocks": clocks})
        error = "unknown" if member.clock.error_ns is None else f"{member.clock.error_ns} ns"
        about[f"clock.{member.path}"] = f"error {error}: {member.clock.words}"
    left_out = dict(plan.left_out)
    for trace, moved in zip(plan.traces(), looked, strict=True):
        if moved.left_out:
            left_out[trace.shown] = moved.left_out
    about |= {f"left_out.{shown}": why for shown, why in left_out.items()}
    attributes = {f"rlprof.{_plain(key)}": _plain(value) for key, value in about.items()}
    said = {"version": 1, "files": files, "attributes": attributes}
    return json.dumps({"perfetto_manifest": said}, indent=1).encode()


def _plain(value: object) -> str | int:
    """Pass on an attribute: a string or an integer of 64 bits, by Perfetto's rules."""
    if type(value) is int and abs(value) < 1 << 63:
        return value
    return one_line(value, longest=1000)


def _stem(trace: Trace) -> str:
    """Say whose a trace is by a path: of a run's, by target, tool and window."""
    if "window" in trace.about:
        target, tool, window = (str(trace.about[what]) for what in ("target", "tool", "window"))
        steps = re.sub(r"^\d+", lambda step: step[0].zfill(6), window)
        parts = [target.replace("/", "_of_"), tool, f"step_{steps}"]
    else:
        parts = _SUFFIX.sub("", trace.shown).split("/")
    # What begins with a dot is hidden, and Perfetto passes over it; ASCII is all that it reads.
    words = [re.sub(r"[^A-Za-z0-9._=-]+", "_", part).lstrip(".") for part in parts]
    return "/".join(["traces", *filter(None, words)])


def _name(stem: str, more: str) -> str:
    ending = f"{more}.json"
    return stem[: _LONGEST - len(ending)].rstrip("/") + ending


def _once(taken: set[str], name: Callable[[str], str]) -> str:
    """Return the first *name* with nothing, `_2`, `_3`, … more that is not *taken*."""
    for nth in count(1):
        found = name("" if nth == 1 else f"_{nth}")
        if found not in taken:
            break
    taken.add(found)
    return found
