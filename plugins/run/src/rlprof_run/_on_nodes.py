"""Files on other nodes: those that members of a fleet wrote there, minus the collected ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

from rlprof_run._place import Place
from rlprof_run._run import Left

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rlprof_run._manifest import ManifestReader

NOBODY = "not collected yet"


@attrs.frozen
class Collected:
    """The outcome of collecting a place."""

    place: Place
    at_ns: int
    left_files: int | None
    left_bytes: int | None
    error: str

    @classmethod
    def of_line(cls, line: Mapping[str, Any]) -> Collected:
        """Read a line of a manifest."""
        files, bytes_ = line.get("left_files"), line.get("left_bytes")
        return cls(
            Place.of_line(line),
            int(line["realtime_ns"]),
            None if files is None else int(files),
            None if bytes_ is None else int(bytes_),
            str(line.get("error") or ""),
        )


def left_of(readers: Iterable[ManifestReader], running: Iterable[str]) -> tuple[Left, ...]:
    """List the places that are not home; those of a fleet that is *running* are not due yet."""
    due: dict[Place, Collected | None] = {}
    live = set(running)
    for reader in readers:
        for place in reader.elsewhere:
            if reader.name not in live:
                due.setdefault(place, None)
        for one in reader.collected:
            before = due.get(one.place)
            if before is None or before.at_ns <= one.at_ns:
                due[one.place] = one
    return tuple(
        Left(place.node, place.host, place.folder, None, None, NOBODY)
        if last is None
        else Left(
            place.node, place.host, place.folder, last.left_files, last.left_bytes, last.error
        )
        for place, last in sorted(due.items(), key=lambda item: (item[0].host, item[0].folder))
        if last is None or last.error
    )
