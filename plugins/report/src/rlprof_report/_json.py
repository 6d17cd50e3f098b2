"""The report as JSON: the values themselves, under a schema number."""

from __future__ import annotations

import json
from math import isfinite
from typing import TYPE_CHECKING, Any

import attrs

if TYPE_CHECKING:
    from rlprof_report.values import Analysis

SCHEMA = 1
"""Changes when a field goes or means something else, not when one is added."""


def report_json(analysis: Analysis) -> str:
    """Return *analysis* as strict JSON: a field a key, numbers to six decimals, NaN as null."""
    parts = [f'{{"schema":{SCHEMA}']
    for field in attrs.fields(type(analysis)):
        value = getattr(analysis, field.name)
        if isinstance(value, tuple):  # a step at a time: all at once are ten times their text
            text = f"[{','.join(_text(one) for one in value)}]"
        else:
            text = _text(value)
        parts.append(f'"{field.name}":{text}')
    return ",".join(parts) + "}"


def _text(value: Any) -> str:
    return json.dumps(_plain(value), separators=(",", ":"), allow_nan=False)


def _plain(value: Any) -> Any:
    """Return *value* as what JSON has; properties of ours are not fields, and are left out."""
    if isinstance(value, float):
        return round(value, 6) if isfinite(value) else None
    if value is None or isinstance(value, (str, int)):
        return value
    if isinstance(value, (tuple, list)):
        return [_plain(one) for one in value]
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    if attrs.has(type(value)):
        return {
            field.name: _plain(getattr(value, field.name)) for field in attrs.fields(type(value))
        }
    return str(value)
