"""The value of `steps`: what is chosen is what a slow and plain reading of it chooses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

from rlprof.schedule import Schedule, Steps, parse_steps
from rlprof_cli.plan import between
from tests.fuzz._loop import Parser

if TYPE_CHECKING:
    from pathlib import Path

SEEDS = (b"[2, 5]", b'"2-4"', b'[7, "2-4", 3]', b"{every: 100, first: 2, last: 1000}", b"none",
         b"{every: 1, first: 3}", b'[" 5 - 9 ", "9-9"]', b"0",
         b'"0-999999999999999999"')  # fmt: skip
TOKENS = (b"every: ", b"first: ", b"last: ", b"-", b", ", b'"', b" ", b"\xc2\xb2", b"\xd9\xa1",
          b"null", b"true", b"1e3", b"{", b"}", b"[", b"]", b"999999999999999999")  # fmt: skip
_LOOKED_AT = 220


def check(data: bytes, folder: Path, *, thorough: bool) -> str:
    """Read it as YAML, as a config file would; text that is none counts as it is."""
    try:
        value = yaml.safe_load(data)
    except Exception:
        value = data.decode("latin-1")
    try:
        steps = parse_steps(value)
    except ValueError as exc:
        words = str(exc)
    else:
        return _chosen(steps, value)
    assert words.isprintable(), words
    return words


def _chosen(steps: Steps, value: Any) -> str:
    chosen = [step for step in range(_LOOKED_AT) if step in steps]
    assert chosen == [step for step in range(_LOOKED_AT) if _plainly(step, value)]
    assert chosen == list(between(steps, 0, _LOOKED_AT - 1))
    assert all(step not in steps for step in map(steps.stretch_end, chosen))
    assert bool(steps) or not chosen
    for joined in (False, True):
        schedule = Schedule(steps, "continuous", None, joined)
        windows = [schedule.at_step(step) for step in range(20)]
        assert [w is not None for w in windows] == [step in steps for step in range(20)]
    return f"steps {str(steps).count(',')} {len(chosen) > 5}"


def _plainly(step: int, value: Any) -> bool:
    if value is None or value == "none":
        return False
    if isinstance(value, dict):
        first, last = value.get("first", 0), value.get("last")
        inside = step >= first and (last is None or step <= last)
        return inside and (step - first) % value["every"] == 0
    return any(_of_item(step, item) for item in (value if isinstance(value, list) else [value]))


def _of_item(step: int, item: Any) -> bool:
    if isinstance(item, int):
        return step == item
    first, last = map(int, item.split("-"))
    return first <= step <= last


PARSER = Parser("steps", "yaml", ("/rlprof/schedule.py",), TOKENS, lambda _: list(SEEDS), check)
