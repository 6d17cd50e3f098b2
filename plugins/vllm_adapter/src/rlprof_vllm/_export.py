"""Turns a window's files into traces on the clock of their host, and a summary of the answers."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Any

import attrs

from rlprof_engine.answers import fewer, unseen
from rlprof_engine.exporting import NOBODY_LEFT, Exported, named, refused
from rlprof_engine.traces import Looked, Whose
from rlprof_vllm._native import FILES

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from rlprof import Artifact, Capture

NOTES = "vllm.json"
"""In the window's folder: the way, the facts of the engine, and the answers of the workers."""

_RANK = re.compile(r"(?:^|_|-)rank-?(\d+)[._-]")
_STEP = re.compile(rb'"name": "execute_[^"]*generation_')


def exported(capture: Capture, folder: Path, out: Path) -> list[Artifact]:
    """Make all artifacts of a window."""
    window = Exported.of(capture, folder, out, NOTES)
    window.add_requests()
    raws = sorted((folder / FILES).glob("*"))
    window.add_traces(raws, _STEP, partial(_whose, capture, window.facts))
    missing = _missing(window)
    if window.facts.get("dp") == 1:  # else another replica may have served them
        ended = [one for one in window.ended if one["state"] == "ended"]
        missing += unseen([one.get("iterations") or 0 for one in ended], window.begun)
    short = fewer(capture.options, [(named(one), one.get("iterations")) for one in window.ended])
    return [*window.made, window.summary("vllm", missing, short, is_whole=not missing)]


def _whose(capture: Capture, facts: Mapping[str, Any], name: str, looked: Looked) -> Whose:
    found = _RANK.search(name)
    worker = int(found[1]) if found else looked.rank
    is_frontend = "async_llm" in name
    own = {} if is_frontend or worker is None else _coordinates(worker, facts)
    target = attrs.evolve(capture.target, coordinates={**capture.target.coordinates, **own})
    return Whose(
        "frontend" if is_frontend else f"worker{'' if worker is None else worker}",
        target,
        {"worker": worker, "frontend": is_frontend},
        is_idle=not looked.steps and not is_frontend,
    )


def _coordinates(worker: int, facts: Mapping[str, Any]) -> dict[str, int]:
    if not facts.get("has_layout"):
        return {"worker": worker}
    return {"tp": worker % facts["tp"], "pp": worker // facts["tp"] % facts["pp"]}


def _missing(window: Exported) -> list[str]:
    """Name the results that are missing."""
    if not window.notes:
        return [NOBODY_LEFT]
    if window.notes["way"] == "worker":
        missing, idle = refused(window.notes)
        return [*window.unended, *missing, *idle]
    facts = window.facts
    expected = facts["tp"] * facts["pp"] * facts["dp"] if facts.get("has_layout") else 1
    there = sum(not one["frontend"] for one in window.found)
    if there >= expected:
        return []
    where = facts.get("directory") or "an unknown folder"
    what = f"{expected - there} of {expected} workers left no trace in {where}"
    return [f"{what}; only vLLM's log says why"]
