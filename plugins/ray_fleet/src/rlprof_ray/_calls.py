"""Calls of actors, as Ray records them: nothing runs in the actors for this.

Every worker reports its calls to Ray's control store (GCS) once a second. The store keeps
the last 100,000 tasks of the cluster, with or without a dashboard.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

from rlprof.errors import RlprofError, one_line

if TYPE_CHECKING:
    from collections.abc import Collection

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
    actor: str
    pid: int
    node: str


class Record:
    """Reads Ray's record again and again; it returns each call once."""

    def __init__(self) -> None:
        self._known: set[str] = set()

    def news(self, actors: Collection[str]) -> list[Call]:
        """Return the calls of *actors* that ended since the last read.

        Raise RlprofError if this Ray does not show them, or the error of Ray.
        """
        calls, known = [], set()
        wanted = {bytes.fromhex(actor) for actor in actors}
        for record in _records():
            if record[10:26] not in wanted:  # a task's id ends with its actor's
                continue
            task = record[2:26].hex()
            call = None if task in self._known else _parsed(record)
            if call is not None and not call.name.endswith(_OWN):
                calls.append(call)
            if call is not None or task in self._known:
                known.add(task)
        self._known = known  # last: a look that fails begins anew
        return calls


def _records() -> list[bytes]:
    """Read the store directly, which takes milliseconds; `ray.timeline` sleeps a second first."""
    import ray

    why = "its dashboard keeps them, or they have another form"
    try:
        from ray._private import state

        is_moved = getattr(state, "_READ_TASK_EVENTS_FROM_DASHBOARD_HEAD", False)
        found = list(accessor(state.state).get_task_events())
    except (ImportError, AttributeError, TypeError) as exc:
        is_moved, found, why = True, [], one_line(exc)
    if is_moved or any(record[:2] != _ID for record in found[:1]):
        raise RlprofError(f"Ray {ray.__version__} does not show calls of actors: {why}")
    return found


def accessor(state: Any) -> Any:
    """Return the way to Ray's control store."""
    if hasattr(state, "_connect_and_get_accessor"):
        return state._connect_and_get_accessor()  # noqa: SLF001 -- Ray has no public name
    state._check_connected()  # noqa: SLF001 -- until 2.51
    return state.global_state_accessor


def _parsed(record: bytes) -> Call | None:
    """Read a record; None while the call goes on."""
    from ray.core.generated import gcs_pb2

    events = gcs_pb2.TaskEvents.FromString(record)
    profile, process = events.profile_events, events.state_updates
    for event in profile.events:
        if event.event_name.startswith("task::") and event.end_time:
            return Call(
                profile.component_id.hex(), event.event_name[6:], event.start_time, event.end_time,
                record[10:26].hex(), process.worker_pid, process.node_id.hex(),
            )  # fmt: skip
    return None
