"""The contract of an artifact of kind `trace`, so that any exporter can show it on a timeline."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, Any

import attrs

if TYPE_CHECKING:
    from pathlib import Path

    from rlprof_testing._drive import Recorded

_SLACK_NS = 2_000_000_000
"""Profilers round times, and record the process itself a little before the window."""


def check_trace(file: Path, recorded: Recorded) -> dict[str, Any]:
    """Check *file* against the trace contract, and return its contents."""
    trace = _strict(file)
    capture = recorded.capture
    assert isinstance(trace, dict), f"{file.name}: a trace must be an object with `traceEvents`"
    assert next(iter(trace), None) == "rlprof", (
        f"{file.name}: its first key is {next(iter(trace), None)!r}; write the `rlprof` object "
        "first, so that a reader finds it without reading the whole file"
    )
    header = trace["rlprof"]
    assert isinstance(header, dict), f"{file.name}: `rlprof` must be an object"
    whose = json.loads(json.dumps(attrs.asdict(capture.target)))
    expected = {
        "run": capture.run_id,
        "target": whose,
        "window": attrs.asdict(capture.window),
        "tool": capture.tool,
    }
    stated = {key: header.get(key) for key in expected}
    if capture.kind == "engine" and isinstance(stated["target"], dict):
        stated["target"] = _without_process(stated["target"], whose)
    assert stated == expected, (
        f"{file.name}: `rlprof` names another capture; begin it with `**capture.header`"
    )
    epoch_ns, error_ns = header.get("epoch_ns"), header.get("error_ns", "missing")
    assert type(epoch_ns) is int, (
        f"{file.name}: rlprof.epoch_ns is {epoch_ns!r}; give the wall clock of ts 0 in ns, an int"
    )
    assert error_ns is None or (type(error_ns) is int and error_ns >= 0), (
        f"{file.name}: rlprof.error_ns is {error_ns!r}; give an int in ns, or null if unknown"
    )
    events = trace.get("traceEvents")
    assert isinstance(events, list), f"{file.name}: `traceEvents` must be a list"
    odd: list[Any] = [event for event in events if not isinstance(event, dict) or "ph" not in event]
    assert odd == [], f"{file.name}: entries of traceEvents must be objects with a `ph`"
    _check_times(file, [event for event in events if event["ph"] != "M"], recorded, header)
    return trace


def _without_process(stated: dict[str, Any], whose: dict[str, Any]) -> dict[str, Any]:
    """Remove the fields by which the processes of an engine differ."""
    found = stated.get("coordinates")
    if not isinstance(found, dict):
        return stated
    known = {key: value for key, value in found.items() if key in whose["coordinates"]}
    return {**stated, "coordinates": known, "worker": whose["worker"]}


def _strict(file: Path) -> Any:
    """Read strict JSON: no NaN, no Infinity, no lone surrogates."""

    def refuse(constant: str) -> Any:
        message = f"{file.name}: {constant} is not JSON; use json.dumps(..., allow_nan=False)"
        raise AssertionError(message)

    data = file.read_bytes()
    assert data[:2] == b"\x1f\x8b", f"{file.name}: a trace must be gzipped; write it with gzip.open"
    try:
        text = gzip.decompress(data).decode("utf-8")
        trace = json.loads(text, parse_constant=refuse)
    except (OSError, EOFError, ValueError) as exc:
        raise AssertionError(f"{file.name}: is not gzipped JSON in UTF-8: {exc}") from exc
    try:
        json.dumps(trace, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError as exc:
        raise AssertionError(
            f"{file.name}: holds half of a surrogate pair, which viewers refuse; use "
            'text.encode("utf-8", "replace").decode()'
        ) from exc
    return trace


def _check_times(
    file: Path, events: list[dict[str, Any]], recorded: Recorded, header: dict[str, Any]
) -> None:
    slack: int = _SLACK_NS + (header["error_ns"] or 0)
    for event in events:
        ts: Any = event.get("ts")
        dur: Any = event.get("dur", 0)
        assert type(ts) in (int, float), f"{file.name}: {event!r} has no `ts`, in microseconds"
        assert type(dur) in (int, float), f"{file.name}: {event!r} has a `dur` that is not a number"
        if not recorded.ended_ns:
            continue
        at = header["epoch_ns"] + int(ts * 1000)
        assert recorded.began_ns - slack <= at <= recorded.ended_ns + slack, (
            f"{file.name}: {event!r} is {(at - recorded.began_ns) / 1e9:.3f} s after the start of "
            "the window, so it is outside of it; `epoch_ns` is the wall clock of ts 0 in ns, `ts` "
            "and `dur` are microseconds"
        )
        assert dur >= 0, f"{file.name}: {event!r} ends before it begins"
