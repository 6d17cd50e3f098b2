"""Adds the notes of a fleet's driver about its members to the members' own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from rlprof_run._run import CaptureResult

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rlprof_run._manifest import ManifestReader, Missed


def with_missed(
    captures: Iterable[CaptureResult], readers: Iterable[ManifestReader]
) -> list[CaptureResult]:
    """Add a missed window: a note to its capture, or a failed capture."""
    found = list(captures)
    places = {(one.target, one.window, one.tool): number for number, one in enumerate(found)}
    for reader in readers:
        for miss in reader.missed:
            key = miss.target, miss.window, miss.tool
            if key not in places:
                if not miss.is_fault:
                    continue
                places[key] = len(found)
                found.append(_never_begun(reader.name, miss))
            own = found[places[key]]
            found[places[key]] = attrs.evolve(own, notes=(*own.notes, miss.note), **miss.late)
    return found


def _never_begun(process: str, miss: Missed) -> CaptureResult:
    return CaptureResult(
        window=miss.window,
        target=miss.target,
        tool=miss.tool,
        process=process,
        state="failed",
        scratch="",
        asked={},
        applied={},
        unsupported={},
        artifacts=(),
        request=miss.request,
        notes=(),
        opened_ns=miss.mono,
        closed_ns=None,
        clock_shift_ns=0,
        start_s=None,
        stop_s=None,
        export_s=None,
    )
