"""Calls of actors, as Ray records them: nothing runs in the actors for this.

Every worker reports its calls to Ray's control store (GCS) once a second. The store keeps
the last 100,000 tasks of the cluster, with or without a dashboard.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import attrs

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

log = logging.getLogger("rlprof")

_ID = b"\x0a\x18"
"""How a serialized record begins: field 1, the task's id, of 24 bytes."""
_OWN = ("__init__", "__ray_call__", "__ray_ready__", "__ray_terminate__")
"""Methods that no program calls in a phase; rlprof itself uses `__ray_call__`."""


@attrs.frozen
class Call:
    """One call of an actor's method, from its arguments to its answer."""

    worker: str
    """Ray's id of the process."""
    name: str
    """As Ray shows it: `Trainer.update`."""
    start_ns: int
    """Wall clock of the actor's host, epoch ns."""
    end_ns: int
    actor: str = ""
    pid: int = 0
    """0: not known, as with `ray.timeline`."""
    node: str = ""


class Record:
    """Reads Ray's record again and again; it returns each call once."""

    def __init__(self) -> None:
        self._known: set[str] = set()
        self._is_private = True

    def news(self, actors: Collection[str]) -> list[Call]:
        """Return the calls of *actors* that ended since the last read.

        Raise the error of Ray if it cannot be asked.
        """
        if self._is_private:
            try:
                return self._new(_privately(actors))
            except (ImportError, AttributeError, TypeError, LookupError) as exc:
                log.info("Ray's record is read through ray.timeline: %s", exc)
                self._is_private = False
        return self._new(_publicly(actors))

    def _new(self, found: Iterator[tuple[str, Any]]) -> list[Call]:
        calls, known = [], set()
        for task, read in found:
            call = None if task in self._known else read()
            if call is not None and not call.name.endswith(_OWN):
                calls.append(call)
            if call is not None or task in self._known:
                known.add(task)
        self._known = known  # last: a look that fails begins anew
        return calls


def _privately(actors: Collection[str]) -> Iterator[tuple[str, Any]]:
    """Read the store directly, which takes milliseconds; `ray.timeline` sleeps a second first."""
    from functools import partial

    from ray._private import state

    if getattr(state, "_READ_TASK_EVENTS_FROM_DASHBOARD_HEAD", False):
        raise LookupError("the dashboard keeps it")
    accessor = state.state._connect_and_get_accessor()  # noqa: SLF001
    records = accessor.get_task_events()
    if any(record[:2] != _ID for record in records[:1]):
        raise LookupError("its records have another form")
    wanted = {bytes.fromhex(actor) for actor in actors}
    return (
        (record[2:26].hex(), partial(_parsed, record))
        for record in records
        if record[10:26] in wanted  # a task's id ends with its actor's
    )


def _parsed(record: bytes) -> Call | None:
    """Read a record; None while the call goes on."""
    from ray.core.generated import gcs_pb2

    told = gcs_pb2.TaskEvents.FromString(record)
    profile, process = told.profile_events, told.state_updates
    for event in profile.events:
        if event.event_name.startswith("task::") and event.end_time:
            return Call(
                profile.component_id.hex(), event.event_name[6:], event.start_time, event.end_time,
                actor=record[10:26].hex(), pid=process.worker_pid, node=process.node_id.hex(),
            )  # fmt: skip
    return None


def _publicly(actors: Collection[str]) -> Iterator[tuple[str, Any]]:
    """Read the record through `ray.timeline`."""
    import ray

    for event in ray.timeline():
        kind, task = event.get("cat", ""), event.get("args", {}).get("task_id", "")
        if kind.startswith("task::") and task[16:] in actors:
            start_ns = round(event["ts"] * 1000)
            worker = event["tid"].rpartition(":")[2]
            call = Call(worker, kind[6:], start_ns, start_ns + round(event["dur"] * 1000))
            yield task, lambda call=call: call
