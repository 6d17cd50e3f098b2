"""Events of devices: kernels, copies, fills and waits, each with an arrow from its CUDA call."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import attrs

from rlprof_nsys._host_events import CUDA_API
from rlprof_nsys._tracks import micros

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rlprof_nsys._sqlite import Tables
    from rlprof_nsys._tracks import Tracks

_PLACE = "start", "end", "deviceId", "contextId", "streamId", "globalPid", "correlationId"


@attrs.frozen
class Kind:
    """One table of device events."""

    table: str
    cat: str
    columns: tuple[str, ...]
    """The columns that go into `args`, in addition to the event's place."""
    named: tuple[str, str] | None
    """A word and a column, which name an event; None: the name of a kernel."""
    track: str = ""
    """The name of a separate track, for events that would not nest on the track of the stream."""
    labels: Mapping[str, str] = attrs.field(factory=dict)
    """Columns with numbers of an enumeration: column → table of the enumeration."""


KINDS = (
    Kind(
        "CUPTI_ACTIVITY_KIND_KERNEL", "kernel",
        ("demangledName", "shortName", "gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ",
         "registersPerThread", "staticSharedMemory", "dynamicSharedMemory", "graphNodeId"),
        None,
    ),
    Kind(
        "CUPTI_ACTIVITY_KIND_GRAPH_TRACE", "cuda_graph", ("graphId", "graphExecId"),
        ("CUDA graph", "graphId"),
    ),
    Kind(
        "CUPTI_ACTIVITY_KIND_MEMCPY", "gpu_memcpy",
        ("copyKind", "bytes", "srcKind", "dstKind", "srcDeviceId", "dstDeviceId", "graphNodeId"),
        ("Memcpy", "copyKind"),
        labels={"copyKind": "ENUM_CUDA_MEMCPY_OPER", "srcKind": "ENUM_CUDA_MEM_KIND",
                "dstKind": "ENUM_CUDA_MEM_KIND"},
    ),
    Kind(
        "CUPTI_ACTIVITY_KIND_MEMSET", "gpu_memset", ("bytes", "value", "memKind", "graphNodeId"),
        ("Memset", "memKind"), labels={"memKind": "ENUM_CUDA_MEM_KIND"},
    ),
    Kind(
        "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", "cuda_sync", ("syncType", "eventId"),
        ("", "syncType"), track="waits", labels={"syncType": "ENUM_CUPTI_SYNC_TYPE"},
    ),
)  # fmt: skip
_IN_NAME = ("demangledName", "shortName")


def device_events(tables: Tables, tracks: Tracks) -> Iterator[str]:
    """Yield the events of all devices, table by table; the arrow of an event follows it."""
    there = [kind for kind in KINDS if tables.columns(kind.table)]
    if not there:
        return
    tables.note_launches()
    number = 0
    for kind in there:
        labels = {column: tables.labels(table) for column, table in kind.labels.items()}
        places: dict[Any, str] = {}
        for start, end, device, context, stream, process, correlation, *values in tables.events(
            kind.table, *_PLACE, *kind.columns
        ):
            key = process, device, context, stream
            if key not in places:
                pid, tid = tracks.of_stream(process, device, context, stream, kind.track)
                yield from tracks.names()
                places[key] = f'"pid":{pid},"tid":{tid},"ts":'
            row = dict(zip(kind.columns, values, strict=True))
            for column, known in labels.items():
                if row[column] is not None:
                    row[column] = known.get(row[column], str(row[column]))
            if kind.named is None:
                texts = [row.pop(column) for column in _IN_NAME]
                name = tables.quoted(texts[0] or texts[1])
            else:
                word, column = kind.named
                name = json.dumps(f"{word} {row.get(column) or ''}".strip())
            args = {key: value for key, value in row.items() if value is not None}
            args |= {"device": device, "context": context, "stream": stream}
            if correlation:
                args["correlation"] = correlation
            at = f"{places[key]}{micros(start)}"
            yield (
                f'{{"ph":"X","cat":"{kind.cat}","name":{name},{at}'
                f',"dur":{micros(end - start)},"args":{json.dumps(args)}}}'
            )
            if launch := tables.launch(process, correlation):
                number += 1
                pid, tid = tracks.of_thread(launch[1], CUDA_API)
                yield from tracks.names()
                arrow = f'"id":{number},"cat":"cuda_flow","name":"launch"'
                yield f'{{"ph":"s",{arrow},"pid":{pid},"tid":{tid},"ts":{micros(launch[0])}}}'
                yield f'{{"ph":"f","bp":"e",{arrow},{at}}}'
