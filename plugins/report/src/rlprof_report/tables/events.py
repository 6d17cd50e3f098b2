"""The table `events`: the slices of all traces of a run, one trace after the other.

A piece of a file at a time: a trace of a gigabyte takes no more memory than a small one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from rlprof_report._slices import Slice, Slices, nanoseconds, number
from rlprof_report.tables.schema import arrow, replica_of, run_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rlprof.types import Artifact
    from rlprof_run import CaptureResult, Run


class _Args(msgspec.Struct, gc=False):
    stream: int | str | None = None
    correlation: int | str | None = None


class _Event(Slice, gc=False):
    args: _Args | None = None


_NO_ARGS = _Args()


def batches(run: Run, schema: Any, problems: list[str]) -> Iterator[Any]:
    """Yield the slices of all traces, as record batches."""
    for capture in run.captures:
        for artifact in capture.artifacts:
            if artifact.kind != "trace":
                continue
            trace = Slices(run.path / artifact.path, capture.clock_shift_ns, _Event)
            same = _same(run, capture, artifact)
            for events in trace.batches():
                yield _selected(run, _batch(events, trace.zero_ns, same, schema))
            problems += (f"{artifact.path}: {why}" for why in trace.problems)


def _same(run: Run, capture: CaptureResult, artifact: Artifact) -> Mapping[str, Any]:
    target, window = capture.target, capture.window
    return {
        "run": run_name(run), "process": capture.process, "role": target.role,
        "rank": target.rank, "replica": replica_of(target),
        "worker": target.worker, "tool": capture.tool, "window": window.id,
        "step": window.start_step, "phase": window.phase, "file": artifact.path,
    }  # fmt: skip


def _batch(events: Sequence[_Event], zero_ns: int, same: Mapping[str, Any], schema: Any) -> Any:
    pa = arrow()
    args = [one.args or _NO_ARGS for one in events]
    own: dict[str, Any] = {
        "category": [one.cat for one in events], "name": [one.name for one in events],
        "start_ns": nanoseconds([one.ts for one in events]) + zero_ns,
        "dur_ns": nanoseconds([one.dur for one in events]),
        "pid": [number(one.pid) for one in events], "tid": [number(one.tid) for one in events],
        "stream": [number(one.stream) for one in args],
        "correlation": [number(one.correlation) for one in args],
    }  # fmt: skip
    arrays = []
    for field in schema:
        is_word = pa.types.is_dictionary(field.type)
        plain = pa.string() if is_word else field.type
        if field.name not in own:
            array = pa.repeat(pa.scalar(same[field.name], plain), len(events))
        else:
            array = pa.array(own[field.name], plain)
        arrays.append(array.dictionary_encode() if is_word else array)
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _selected(run: Run, batch: Any) -> Any:
    """Drop slices before or after the selected time: a trace shows a whole window."""
    after, until = run.selection.from_ns, run.selection.until_ns
    if after is None and until is None:
        return batch
    import pyarrow.compute as pc

    starts, is_in = batch["start_ns"], True
    if until is not None:
        is_in = pc.less(starts, until)
    if after is not None:
        ends = pc.add(starts, pc.max_element_wise(batch["dur_ns"], 1))
        is_in = pc.and_(is_in, pc.greater(ends, after))
    return batch.filter(is_in)
