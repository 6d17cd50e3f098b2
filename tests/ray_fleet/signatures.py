"""What rlprof-ray needs of Ray beyond its public names, in the releases it supports.

`python -m tests.ray_fleet.signatures --refresh` reads it out of the wheels of these releases;
`--check` reports whether the newest release of the index has what none of these has.
A wheel has 70 MB.
"""

import ast
import re
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.signatures.record import Json, Record
from tests.signatures.sources import class_in, functions_of, has, signature

RELEASES = ("ray==2.49.2", "ray==2.51.2", "ray==2.55.1", "ray==2.60.0")
"""The oldest that rlprof-ray supports, the newest, and some between."""
COMPILED = "ray/_raylet.so"
CORE = (
    "current_actor_is_asyncio", "deserialize_and_register_actor_handle", "get_actor_table",
    "get_event_loop", "get_task_events", "PythonFunctionDescriptor",
)  # fmt: skip
"""Names that rlprof-ray calls in the compiled module."""
HANDLE = ("_actor_id", "_ray_allow_out_of_order_execution", "_ray_weak_ref")
GROUPS = r'(?<=")_ray_system(?=")|(?<=method\.)__ray_concurrency_group__(?= =)'


def described(sources: Mapping[str, str]) -> Json:
    """Describe which of these names a release has."""
    homes = {"actor": "ray/actor.py", "state": "ray/_private/state.py",
             "manager": "ray/_private/function_manager.py",
             "worker": "ray/_private/worker.py"}  # fmt: skip
    trees = {name: ast.parse(sources[file]) for name, file in homes.items()}
    handle = class_in(trees["actor"], "ActorHandle")
    calls = [
        signature(one)
        for one in ast.walk(trees["actor"])
        if isinstance(one, ast.FunctionDef) and one.name == "__ray_call__"
    ]
    access = functions_of(class_in(trees["state"], "GlobalState"))
    ways = ("_connect_and_get_accessor", "_check_connected")
    made = [
        ast.unparse(one)
        for one in ast.walk(trees["actor"])
        if isinstance(one, ast.Call)
        and ast.unparse(one.func).endswith("deserialize_and_register_actor_handle")
    ]
    return {
        "ActorHandle": [name for name in HANDLE if has(handle, name)],
        "__ray_call__": calls,
        "a handle": [re.sub(r"\s+", " ", one) for one in made],
        "concurrency groups": sorted(set(re.findall(GROUPS, sources[homes["actor"]]))),
        "GlobalState": [signature(access[name]) for name in ways if name in access],
        "calls are read elsewhere": "_READ_TASK_EVENTS_FROM_DASHBOARD_HEAD"
        in sources[homes["state"]],
        "FunctionActorManager": has(
            class_in(trees["manager"], "FunctionActorManager"), "_loaded_actor_classes"
        ),
        "global_worker": bool(
            re.search(r"^global_worker\b", sources[homes["worker"]], re.MULTILINE)
        ),
        "find_gcs_addresses": "\ndef find_gcs_addresses():" in sources["ray/_private/services.py"],
        "messages": [
            name for name in ("core_worker_pb2", "gcs_pb2")
            if f"ray/core/generated/{name}.py" in sources
        ],
        COMPILED: [name for name in CORE if name in sources[COMPILED]],
    }  # fmt: skip


RECORD = Record(Path(__file__).with_suffix(".json"), RELEASES, described, COMPILED)


if __name__ == "__main__":
    sys.exit(RECORD.main("tests.ray_fleet.signatures", __doc__))
