"""The actors of a live cluster, with or without a name, and a handle of each.

Ray gives handles only of named actors, and most trainers have no name. Its control store (GCS)
knows all of them, and the parts of a handle.
"""

from __future__ import annotations

from typing import Any

import attrs

from rlprof.errors import RlprofError, one_line
from rlprof_ray._calls import accessor

_NO_LIMIT = -1


@attrs.frozen(eq=False)
class Actor:
    """One live actor."""

    id: str
    name: str
    """Empty: it has none."""
    kind: str
    """Its class, without the module."""
    host: str
    pid: int
    started_ms: int
    record: Any = attrs.field(repr=False)
    """Its record in Ray's control store."""

    @property
    def label(self) -> str:
        """Its name for users."""
        return self.name or f"{self.kind} {self.id[:8]}"


def living() -> list[Actor]:
    """Return all live actors, oldest first; raise RlprofError if this Ray does not list them."""
    import ray

    try:
        from ray._private import state
        from ray.core.generated import gcs_pb2

        table = accessor(state.state).get_actor_table(None, "ALIVE")
        records = [gcs_pb2.ActorTableData.FromString(record) for record in table]
    except (ImportError, AttributeError, TypeError, ValueError) as exc:
        why = one_line(exc)
        raise RlprofError(f"attach: Ray {ray.__version__} does not list its actors: {why}") from exc
    hosts = {node["NodeID"]: node["NodeManagerHostname"] for node in ray.nodes()}
    found = [
        Actor(
            record.actor_id.hex(), record.name, record.class_name.rpartition(".")[2],
            hosts.get(record.address.node_id.hex(), "?"), record.pid, record.start_time, record,
        )
        for record in records
    ]  # fmt: skip
    return sorted(found, key=lambda actor: (actor.started_ms, actor.id))


def handle_of(actor: Actor) -> Any:
    """Return a handle that does not keep the actor alive.

    Ray would import the class of the actor and all its needs; this handle has another class.
    """
    import ray
    from ray._private import worker
    from ray._raylet import PythonFunctionDescriptor  # type: ignore[attr-defined]
    from ray.core.generated import core_worker_pb2

    record, process = actor.record, worker.global_worker
    made = core_worker_pb2.ActorHandle(
        actor_id=record.actor_id, creation_job_id=record.job_id, name=record.name,
        owner_id=record.owner_address.worker_id, owner_address=record.owner_address,
        actor_creation_task_function_descriptor=record.function_descriptor,
        max_pending_calls=_NO_LIMIT, ray_namespace=record.ray_namespace, enable_task_events=True,
    )  # fmt: skip
    own = record.function_descriptor.python_function_descriptor
    names = own.module_name, own.function_name, own.class_name, own.function_hash
    known = process.function_actor_manager._loaded_actor_classes  # noqa: SLF001
    made_class = ray.remote(_Asked).__ray_metadata__.modified_class
    known.setdefault(PythonFunctionDescriptor(*names).function_id, made_class)
    core = process.core_worker
    return core.deserialize_and_register_actor_handle(made.SerializeToString(), None, True)


class _Asked:
    """The part of a handle that `__ray_call__` needs."""
