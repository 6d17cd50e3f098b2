"""Turns a window's files into traces on the clock of their host, and a summary of the answers."""

from __future__ import annotations

import json
import re
from functools import partial
from typing import TYPE_CHECKING, Any

import attrs

from rlprof import Artifact
from rlprof_engine.answers import fewer, unseen
from rlprof_engine.requests import FILE as REQUESTS
from rlprof_engine.requests import begun_in, trace_of
from rlprof_engine.traces import Looked, Whose, artifact_of
from rlprof_vllm._native import FILES

if TYPE_CHECKING:
    from pathlib import Path

    from rlprof import Capture

NOTES = "vllm.json"
"""In the window's folder: the way, the facts of the engine, and the answers of the workers."""

_RANK = re.compile(r"(?:^|_|-)rank-?(\d+)[._-]")
_STEP = re.compile(rb'"name": "execute_[^"]*generation_')


def exported(capture: Capture, folder: Path, out: Path) -> list[Artifact]:
    """Make all artifacts of a window."""
    try:
        notes = json.loads((folder / NOTES).read_bytes())
    except (OSError, ValueError):  # the process that held the engine has died
        notes = {}
    made, begun = [], 0
    if (folder / REQUESTS).exists():
        begun = begun_in(folder / REQUESTS)
        steps = sum(one.get("iterations") or 0 for one in _ended(notes))
        made.append(trace_of(capture, folder / REQUESTS, out, steps=steps))
    found: list[dict[str, Any]] = []
    whose = partial(_whose, capture, notes.get("facts") or {})
    made += [
        artifact_of(capture, raw, out, step=_STEP, whose=whose, found=found)
        for raw in sorted((folder / FILES).glob("*"))
    ]
    made.append(_summary(capture, notes, found, out, begun))
    return made


def _whose(capture: Capture, facts: dict[str, Any], name: str, looked: Looked) -> Whose:
    named = _RANK.search(name)  # vLLM 0.11.0 does not put the rank there
    worker = int(named[1]) if named else looked.rank
    is_frontend = "async_llm" in name
    own = {} if is_frontend or worker is None else _coordinates(worker, facts)
    target = attrs.evolve(capture.target, coordinates={**capture.target.coordinates, **own})
    return Whose(
        "frontend" if is_frontend else f"worker{'' if worker is None else worker}",
        target,
        {"worker": worker, "frontend": is_frontend},
        is_idle=not looked.steps and not is_frontend,
    )


def _coordinates(worker: int, facts: dict[str, Any]) -> dict[str, int]:
    if not facts.get("has_layout"):
        return {"worker": worker}
    return {"tp": worker % facts["tp"], "pp": worker // facts["tp"] % facts["pp"]}


def _summary(
    capture: Capture, notes: dict[str, Any], found: list[dict[str, Any]], out: Path, begun: int
) -> Artifact:
    """Write the summary: what was asked, the answers, and the missing traces."""
    name = f"{capture.stem}_vllm.json"
    missing = _missing(notes, found)
    if (notes.get("facts") or {}).get("dp") == 1:  # else another replica may have served them
        ended = [one for one in _ended(notes) if one["state"] == "ended"]
        missing += unseen([one.get("iterations") or 0 for one in ended], begun)
    said = {**notes, "traces": found, "missing": missing}
    (out / name).write_text(json.dumps(said, indent=1, default=str) + "\n", encoding="utf-8")
    told = [f"closed early: {notes['cut']}"] if notes.get("cut") else []
    ran = [(f"worker {one.get('worker', '?')}", one.get("iterations")) for one in _ended(notes)]
    note = "; ".join([*told, *missing, *fewer(capture.options, ran)])
    return Artifact(name, "files", "json", "partial" if missing else "whole", note)


def _ended(notes: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the answers of the workers at the end of the window."""
    return (notes.get("answers") or {}).get("ended") or []


def _missing(notes: dict[str, Any], found: list[dict[str, Any]]) -> list[str]:
    """Name the results that are missing."""
    if not notes:
        return ["the process that held the engine ended inside the window"]
    facts, answers = notes.get("facts") or {}, notes.get("answers") or {}
    if notes["way"] == "worker":
        bad = {"failed", "refused", "idle"}
        told = [one for part in answers.values() for one in part if one["state"] in bad]
        return [f"worker {one.get('worker', '?')}: {one.get('why')}" for one in told]
    expected = facts["tp"] * facts["pp"] * facts["dp"] if facts.get("has_layout") else 1
    there = sum(not one["frontend"] for one in found)
    if there >= expected:
        return []
    where = facts.get("directory") or "an unknown folder"
    what = f"{expected - there} of {expected} workers left no trace in {where}"
    return [f"{what}; only vLLM's log says why"]
