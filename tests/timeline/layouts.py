"""Writes the same events in the layouts of the tools whose traces the timeline reads."""

import json
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

from rlprof_timeline._merge import moved_either
from rlprof_timeline._place import Place
from rlprof_timeline._tracks import Tracks
from rlprof_traces import TraceText

PREFIX = 123_456


def us(ns):
    return f"{'-' if ns < 0 else ''}{abs(ns) // 1000}.{abs(ns) % 1000:03d}"


def _members(event):
    return {
        key: us(value) if key in ("ts", "dur") and type(value) is int else json.dumps(value)
        for key, value in event.items()
    }


def kineto(event):
    """Write one member per line, as of torch 2.11."""
    lines = [
        f'    "{key}": {text}' if key != "args" else f'    "args": {{\n      {text[1:-1]}\n    }}'
        for key, text in _members(event).items()
    ]
    return "\n  {\n" + ",\n".join(lines) + "\n  }"


def kineto_before(event):
    """Write several members per line, as up to then."""
    members = [*_members(event).items()]
    args = dict(members).get("args")
    # A flow's first line ends with its time; that of a slice ends before it.
    ends = [n for n, (key, _) in enumerate(members) if key in ("ts", "args", "id")]
    first = ends[0] if members[ends[0]][0] != "id" else ends[1] + 1
    parts = members[:first], [one for one in members[first:] if one[0] != "args"]
    lines = [", ".join(f'"{k}": {t}' for k, t in part) for part in parts if part]
    if args is not None:
        lines.append(f'"args": {{\n      {args[1:-1]}\n    }}')
    return "\n  {\n    " + ",\n    ".join(lines) + "\n  }"


def one_line(event, blank=" "):
    """Write as `json.dump` does or, without a blank, as orjson does."""
    members = (f'"{key}":{blank}{text}' for key, text in _members(event).items())
    return "{" + f",{blank}".join(members) + "}"


LAYOUTS: dict[str, Callable[[dict[str, Any]], str]] = {
    "kineto": kineto,
    "kineto before": kineto_before,
    "one line": one_line,
    "compact": partial(one_line, blank=""),
}


def document(events, head, tail=""):
    first = json.dumps(head)[:-1] + (", " if head else "")
    return (first + '"traceEvents": [' + ",".join(events) + "\n  ]" + tail + "}").encode()


def read(content, folder, size, shift_ns=0):
    """Move a file's events in batches of *size*; return them as a strict reader finds them."""
    file = folder / "trace"
    file.write_bytes(content)
    text, place = TraceText(file), Place(shift_ns, Tracks("", 100_000, 1), PREFIX)
    whole = b",".join(filter(None, (moved_either(batch, place) for batch in text.batches(size))))
    return json.loads(b"[" + whole + b"]", parse_float=Fraction), text, place
