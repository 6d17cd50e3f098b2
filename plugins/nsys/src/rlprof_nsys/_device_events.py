"""Events of devices: kernels, copies, fills and waits, each with an arrow from its CUDA call."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import attrs

from rlprof_nsys._host_events import CUDA_API
from rlprof_nsys._tracks import micros

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

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
    name: Callable[[Tables, Mapping[str, Any]], str]
    """Returns the name of an event, as JSON."""
    track: str = ""
    """The name of a separate track, for events that would not nest on the track of the stream."""
    labels: Mapping[str, str] = attrs.field(factory=dict)
    """Columns with numbers of an enumeration: column → table of the enumeration."""


def _kernel(tables: Tables, row: Mapping[str, Any]) -> str:
    return tables.quoted(row["demangledName"] or row["shortName"])


def _labelled(word: str, column: str) -> Callable[[Tables, Mapping[str, Any]], str]:
    return lambda _, row: json.dumps(f"{word} {row.get(column) or ''}".strip())


KINDS = (
    Kind(
        "CUPTI_ACTIVITY_KIND_KERNEL", "kernel",
        ("demangledName", "shortName", "gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ",
         "registersPerThread", "staticSharedMemory", "dynamicSharedMemory", "graphNodeId"),
        _kernel,
    ),
    Kind(
        "CUPTI_ACTIVITY_KIND_GRAPH_TRACE", "cuda_graph", ("graphId", "graphExecId"),
        _labelled("CUDA graph", "graphId"),
    ),
    Kind(
        "CUPTI_ACTIVITY_KIND_MEMCPY", "gpu_memcpy",
        ("copyKind", "bytes", "srcKind", "dstKind", "srcDeviceId", "dstDeviceId", "graphNodeId"),
        _labelled("Memcpy", "copyKind"),
        labels={"copyKind": "ENUM_CUDA_MEMCPY_OPER", "srcKind": "ENUM_CUDA_MEM_KIND",
                "dstKind": "ENUM_CUDA_MEM_KIND"},
    ),
    Kind(
        "CUPTI_ACTIVITY_KIND_MEMSET", "gpu_memset", ("bytes", "value", "memKind", "graphNodeId"),
        _labelled("Memset", "memKind"), labels={"memKind": "ENUM_CUDA_MEM_KIND"},
    ),
    Kind(
        "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", "cuda_sync", ("syncType", "eventId"),
        _labelled("", "syncType"), track="waits", labels={"syncType": "ENUM_CUPTI_SYNC_TYPE"},
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
        names = {column: tables.labels(table) for column, table in kind.labels.items()}
        for line, end, launch in _events(tables, tracks, kind, names):
            yield line
            if launch is None:
                continue
            number += 1
            start, thread = launch
            pid, tid = tracks.of_thread(thread, CUDA_API)
            yield from tracks.names()
            arrow = f'"id":{number},"cat":"cuda_flow","name":"launch"'
            yield f'{{"ph":"s",{arrow},"pid":{pid},"tid":{tid},"ts":{micros(start)}}}'
            yield f'{{"ph":"f","bp":"e",{arrow},{end}}}'


def _events(
    tables: Tables, tracks: Tracks, kind: Kind, names: Mapping[str, Mapping[int, str]]
) -> Iterator[tuple[str, str, tuple[int, int] | None]]:
    """Yield each event, its place, and the start and thread of its CUDA call."""
    places: dict[Any, str] = {}
    for start, end, device, context, stream, process, correlation, *values in tables.events(
        kind.table, *_PLACE, *kind.columns
    ):
        key = process, device, context, stream
        if key not in places:
            pid, tid = tracks.of_stream(process, device, context, stream, kind.track)
            for line in tracks.names():
                yield line, "", None
            places[key] = f'"pid":{pid},"tid":{tid},"ts":'
        row = dict(zip(kind.columns, values, strict=True))
        for column, labels in names.items():
            if row[column] is not None:
                row[column] = labels.get(row[column], str(row[column]))
        args = {name: value for name, value in row.items()
                if value is not None and name not in _IN_NAME}  # fmt: skip
        args |= {"device": device, "context": context, "stream": stream}
        if correlation:
            args["correlation"] = correlation
        at = f"{places[key]}{micros(start)}"
        line = (
            f'{{"ph":"X","cat":"{kind.cat}","name":{kind.name(tables, row)},{at}'
            f',"dur":{micros(end - start)},"args":{json.dumps(args)}}}'
        )
        yield line, at, tables.launch(process, correlation)
