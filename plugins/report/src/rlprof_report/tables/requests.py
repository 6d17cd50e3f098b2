"""The table `requests`: requests to engines, as the program and as the engine saw them.

A request may appear twice: `source` is `span` if the program noted it (always on), and `engine` if
the engine recorded it (in windows).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlprof_report._slices import ENDING, engine_requests, preemptions_of
from rlprof_report.tables.schema import replica_of, run_name
from rlprof_report.tables.spans import Moments, taken

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rlprof_run import CaptureResult, Run, Span


def rows(run: Run, problems: list[str]) -> Iterator[tuple[Any, ...]]:
    """Yield the requests in spans, then those in the windows of each engine."""
    moments = Moments(run)
    for span in run.spans(problems):
        if span.kind == "span" and span.name == "request":
            yield _of_span(run_name(run), span, moments.step_of(span))
    for capture in run.captures:
        for artifact in capture.artifacts:
            if artifact.kind == "trace" and artifact.path.endswith(ENDING):
                file, faults = run.path / artifact.path, list[str]()
                for request in engine_requests(file, capture.clock_shift_ns, faults):
                    yield _of_engine(run_name(run), capture, request)
                problems += (f"{artifact.path}: {why}" for why in faults)


def _of_span(run: str, span: Span, step: int | None) -> tuple[Any, ...]:
    rest, target = dict(span.attributes), span.target
    noted = taken(rest, "replica", str)
    return (
        run, span.process, target.role, target.rank,
        replica_of(target) if noted is None else noted, "span",
        taken(rest, "request", str), step, taken(rest, "trajectory", str),
        taken(rest, "turn", int), span.start_ns, _after(span, rest.get("queued_s")),
        _after(span, rest.get("first_token_s")), span.end_ns, taken(rest, "prompt_tokens", int),
        taken(rest, "tokens", int), taken(rest, "finish", str), taken(rest, "preemptions", int),
    )  # fmt: skip


def _after(span: Span, seconds: object) -> int | None:
    """Return the time when this many seconds of *span* were over, if it took as long."""
    if isinstance(seconds, (int, float)) and 0 <= seconds * 1e9 <= span.end_ns - span.start_ns:
        return span.start_ns + round(seconds * 1e9)
    return None


def _of_engine(run: str, capture: CaptureResult, request: dict[str, Any]) -> tuple[Any, ...]:
    target = capture.target
    return (
        run, capture.process, target.role, target.rank, replica_of(target), "engine",
        taken(request, "id", str), capture.window.start_step, None, None, request["start_ns"],
        request.get("prefill_ns"), request.get("decode_ns"), request["end_ns"],
        taken(request, "prompt_tokens", int), taken(request, "tokens", int),
        taken(request, "finish", str), preemptions_of(request),
    )  # fmt: skip
