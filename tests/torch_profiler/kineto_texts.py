"""Raw traces as generations of Kineto lay them out, text by text."""

from __future__ import annotations

BASE = 1790857026000000000


def span(name: str, number: int, *, args: str = '"External id": 1') -> str:
    """Write a span as torch 2.13 does: a key per line, the name unescaped."""
    return (
        f'  {{\n    "ph": "X",\n    "cat": "user_annotation",\n    "name": "{name}",\n'
        f'    "pid": {7000 + number},\n    "tid": 3,\n    "ts": {number}.500,\n'
        f'    "dur": {number}.250\n    ,\n    "args": {{\n      {args}\n    }}\n  }}'
    )


def old_span(name: str, number: int, *, cat: str = "user_annotation", ts: str = "") -> str:
    """Write a span as torch up to 2.12 does: several keys per line."""
    return (
        f'  {{\n    "ph": "X", "cat": "{cat}", "name": "{name}", "pid": {7000 + number}, "tid": 3,'
        f'\n    "ts": {ts or f"{number}.500"}, "dur": {number}.250,\n'
        f'    "args": {{\n      "External id": 1\n    }}\n  }}'
    )


def kineto(*spans: str, metadata: str = "") -> bytes:
    """Wrap spans as torch 2.13 does."""
    head = f' {{\n    "schemaVersion": 1,\n    "deviceProperties": [],\n    \n{metadata}'
    clock = f'    "displayTimeUnit": "ms",\n    "baseTimeNanoseconds": {BASE},\n'
    events = ",\n".join(spans)
    text = f'{head}{clock}    "traceEvents": [\n    \n{events}\n  ],"traceName": "a.json" }}'
    return text.encode("utf-8", "surrogateescape")


def old_kineto(*spans: str) -> bytes:
    """Wrap spans as torch 2.4 to 2.6 does, base at the end."""
    head = '\n{\n  "schemaVersion": 1,\n  "traceEvents": [\n'
    tail = f'\n  ],\n  "traceName": "a.json",\n  "baseTimeNanoseconds": {BASE}\n}}'
    return (head + ",\n".join(spans) + tail).encode()
