"""Events of threads: NVTX ranges and marks, calls of CUDA and of the operating system."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from rlprof_nsys._sqlite import PID_SHIFT
from rlprof_nsys._tracks import micros

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rlprof_nsys._sqlite import Tables
    from rlprof_nsys._tracks import Tracks

CUDA_API = "CUDA API"
NVTX = "NVTX_EVENTS"
CATEGORY, MARK, PUSH_POP, START_END, DOMAIN = 33, 34, 59, 60, 75
"""The values of `eventType` that we read."""
_VALUES = ("uint64Value", "int64Value", "uint32Value", "int32Value", "doubleValue", "floatValue",
           "jsonText")  # fmt: skip
"""One of these columns has the payload."""


def ranges(tables: Tables, tracks: Tracks) -> Iterator[str]:
    """Yield NVTX ranges and marks; each domain of a thread has a separate track.

    Ranges of NVTX's start and end calls may end on another thread, so they become async events.
    A range that is open at the end of the session lasts until then.
    """
    domains, categories = _names(tables, DOMAIN), _names(tables, CATEGORY)
    last_ns = tables.duration_ns()
    columns = ("start", "end", "eventType", "category", "text", "textId", "globalTid", "domainId",
               *_VALUES)  # fmt: skip
    number = 0
    quoted = tables.quoted
    chosen = f"eventType IN ({MARK}, {PUSH_POP}, {START_END})"
    rows = tables.events(NVTX, *columns, where=chosen)
    heads: dict[Any, tuple[str, str]] = {}
    for start, end, kind, category, text, text_id, thread, domain, *values in rows:
        key = thread, domain, category
        if key not in heads:
            process = (thread or 0) >> PID_SHIFT
            whose = domains.get((process, domain, None), "")
            pid, tid = tracks.of_thread(thread, f"NVTX {whose}".strip())
            yield from tracks.names()
            args = {"domain": whose} if whose else {}
            if category:
                args["category"] = categories.get((process, domain, category), str(category))
            heads[key] = f'"pid":{pid},"tid":{tid},"ts":', json.dumps(args)[1:-1]
        place, details = heads[key]
        name = quoted(text_id) if text is None else json.dumps(text or "unnamed")
        for value in values:
            if value is not None:
                details = f'{details}{"," if details else ""}"payload":{_plain(value)}'
                break
        if start < 0:
            details, start = f"{details}{',' if details else ''}{_began(start)}", 0  # noqa: PLW2901
        if end is None and kind != MARK:
            details = f'{details}{"," if details else ""}"unfinished":true'
            end = max(start, last_ns)  # noqa: PLW2901
        head = f'"cat":"nvtx","name":{name},{place}{micros(start)}'
        if kind == PUSH_POP:
            yield f'{{"ph":"X",{head},"dur":{micros(end - start)},"args":{{{details}}}}}'
        elif kind == MARK:
            yield f'{{"ph":"i","s":"t",{head},"args":{{{details}}}}}'
        else:
            number += 1
            yield f'{{"ph":"b","id":{number},{head},"args":{{{details}}}}}'
            yield f'{{"ph":"e","id":{number},"cat":"nvtx","name":{name},{place}{micros(end)}}}'


def ranges_in(tables: Tables, domain: str) -> int:
    """Count the ranges that the processes of the share pushed in *domain*."""
    share = tables.condition(NVTX) or "TRUE"
    query = (
        f"SELECT count(*) FROM {NVTX} WHERE eventType = {PUSH_POP} AND {share}"  # noqa: S608 -- our own words
        f" AND (globalTid >> {PID_SHIFT}, domainId) IN (SELECT globalTid >> {PID_SHIFT}, domainId"
        f" FROM {NVTX} LEFT JOIN StringIds ON id = textId WHERE eventType = {DOMAIN}"
        " AND coalesce(text, value) = ?)"
    )
    return tables.first(query, domain) or 0


def calls(tables: Tables, tracks: Tracks, table: str, kind: str) -> Iterator[str]:
    """Yield the calls in *table*: of the CUDA API, or of the operating system's libraries."""
    cat = json.dumps(kind.lower().replace(" ", "_"))
    columns = "start", "end", "nameId", "globalTid", "correlationId", "returnValue"
    quoted = tables.quoted
    places: dict[Any, str] = {}
    for start, end, name, thread, correlation, returned in tables.events(table, *columns):
        if thread not in places:
            pid, tid = tracks.of_thread(thread, kind)
            yield from tracks.names()
            places[thread] = f'"pid":{pid},"tid":{tid},"ts":'
        args = f'"returned":{returned}' if returned else ""
        if correlation:
            args = f'"correlation":{correlation}{"," if args else ""}{args}'
        if start < 0:
            args, start = f"{args}{',' if args else ''}{_began(start)}", 0  # noqa: PLW2901
        yield (
            f'{{"ph":"X","cat":{cat},"name":{quoted(name)},{places[thread]}{micros(start)}'
            f',"dur":{micros(end - start)},"args":{{{args}}}}}'
        )


def _names(tables: Tables, kind: int) -> dict[tuple[int, int | None, int | None], str]:
    """Return the names that processes gave to domains or categories."""
    columns = "globalTid", "domainId", "category", "text", "textId"
    found = {}
    for thread, domain, category, text, text_id in tables.rows(
        NVTX, *columns, where=f"eventType = {kind}"
    ):
        key = (thread or 0) >> PID_SHIFT, domain, None if kind == DOMAIN else category
        found[key] = text or tables.text(text_id)
    return found


def _began(start: int) -> str:
    """Return the true start of an event that began before the session; it is drawn from time 0."""
    return f'"began_us":{micros(start)}'


def _plain(value: Any) -> str:
    """Return a payload as JSON; JSON has no NaN and no infinity."""
    if type(value) is int:  # nearly all
        return str(value)
    if isinstance(value, float) and value - value != 0:
        return json.dumps(str(value))
    return json.dumps(value)
