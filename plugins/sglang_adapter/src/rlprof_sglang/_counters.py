"""The state of an SGLang engine, from the load that its schedulers publish anyway.

Each scheduler writes its load to shared memory: at each prefill, when it is idle, and every 15
decode iterations. We read it without SGLang's lock, because the scheduler would wait for the lock.
Releases without this module publish no load; there, only the frontend's own requests are known.
"""

from __future__ import annotations

import json
import struct
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlprof_engine.counters import fetched, own, samples, totals

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_FIELDS = ("num_running_reqs", "num_waiting_reqs", "token_usage")
_METRICS = ("sglang:num_running_reqs", "sglang:num_queue_reqs", "sglang:token_usage")
_HEADER = struct.Struct("<4sHHI")
_LENGTH = struct.Struct("<I")
_MODULE = "sglang.srt.managers.load_snapshot"


def kept(handle: Any) -> dict[str, float]:
    """Return the counters of an engine in this process."""
    manager = own(handle, "tokenizer_manager") or handle
    states = own(manager, "rid_to_state")
    if not isinstance(states, dict):
        return {}
    return {"requests_in_flight": len(states), **_published(manager)}


def _published(manager: Any) -> dict[str, float]:
    """Read the load that the schedulers of this engine wrote last."""
    reader = own(manager, "load_snapshot_reader")
    decoder = getattr(sys.modules.get(_MODULE), "snapshot_decoder", None)
    path = own(reader, "path") or own(reader, "_shm_path")
    if decoder is None or not isinstance(path, str):
        return {}
    with suppress(OSError, ValueError, struct.error):  # not there yet, or just being written
        return _summed(
            [getattr(decoder.decode(one), name) for name in _FIELDS]
            for one in _slots(Path(path).read_bytes())
        )
    return {}


def _slots(data: bytes) -> Iterable[bytes]:
    """Yield the load of each scheduler; raise ValueError while one of them is writing."""
    magic, _, count, size = _HEADER.unpack_from(data)
    for start in range(_HEADER.size, _HEADER.size + count * size, size):
        (length,) = _LENGTH.unpack_from(data, start)
        if magic != b"SLNS" or not 0 < length <= size - _LENGTH.size:
            raise ValueError(length)
        yield data[start + _LENGTH.size :][:length]


def _summed(rows: Iterable[Sequence[float]]) -> dict[str, float]:
    columns = list(zip(*rows, strict=True)) or [(), (), ()]
    return totals(*columns)


def asked(address: str) -> dict[str, float]:
    """Ask a server for its load, or for its metrics if it has no route for the load."""
    with suppress(OSError, ValueError, KeyError):
        loads = json.loads(fetched(f"{address}/v1/loads?include=core"))["loads"]
        return _summed([load[name] for name in _FIELDS] for load in loads)
    found = samples(fetched(f"{address}/metrics"), _METRICS)
    return totals(*(found.get(name, []) for name in _METRICS))
