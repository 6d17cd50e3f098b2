"""The table `captures`: each recording of a window, and its outcome."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlprof_report.tables.schema import replica_of, run_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rlprof_run import Run


def rows(run: Run, problems: list[str]) -> Iterator[tuple[Any, ...]]:  # noqa: ARG001 -- as others
    """Yield all captures, by window."""
    for one in run.captures:
        target, window = one.target, one.window
        counted = [artifact.events for artifact in one.artifacts if artifact.events is not None]
        yield (
            run_name(run), one.process, target.role, target.rank,
            replica_of(target), target.worker, one.tool,
            window.id, window.start_step, window.end_step, window.phase, window.occurrence,
            one.state, "; ".join(one.notes) or None, one.request or None,
            one.opened_ns, one.closed_ns, one.start_s, one.stop_s, one.export_s,
            sum(counted) if counted else None,
            sum(artifact.size for artifact in one.artifacts),
            [artifact.path for artifact in one.artifacts],
        )  # fmt: skip
