"""Turns a window's files into traces on the clock of their host, and a summary of the answers."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Any

import attrs

from rlprof import Artifact
from rlprof_engine.answers import fewer, unseen
from rlprof_engine.exporting import NOBODY_LEFT, Exported, named, refused
from rlprof_engine.recording import IDLE
from rlprof_engine.traces import Looked, Whose
from rlprof_sglang._native import FILES

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from rlprof import Capture

NOTES = "sglang.json"
"""In the window's folder: the way, the facts of the engine, and the answers of the schedulers."""

_RANKS = re.compile(r"-(TP|DP|PP|EP)-(\d+)")
_STAGE = re.compile(r"-(EXTEND|DECODE)\.trace\.json")
_STAGES = {"EXTEND": "prefill", "DECODE": "decode"}
_STEP = re.compile(rb'"cat": "user_annotation",\s*"name": "step\[')


def exported(capture: Capture, folder: Path, out: Path) -> list[Artifact]:
    """Make all artifacts of a window."""
    window = Exported.of(capture, folder, out, NOTES)
    window.add_requests(counts=window.facts.get("dp") == 1)  # idle replicas run steps, too
    raws = sorted((folder / FILES).glob("*"))
    merged = [raw for raw in raws if raw.name.startswith("merged-")]
    whose = partial(_whose, capture, window.facts)
    window.add_traces([raw for raw in raws if raw not in merged], _STEP, whose)
    copies = [_as_it_is(capture, raw, out) for raw in merged]
    return [*window.made, *copies, _summary(window, has_merged=bool(merged))]


def _as_it_is(capture: Capture, raw: Path, out: Path) -> Artifact:
    """Keep SGLang's merged file unchanged; its traces are also exported one by one."""
    name = f"{capture.stem}_{raw.name}"
    (out / name).write_bytes(raw.read_bytes())
    return Artifact(name, "files", "chrome-trace", note="merged by SGLang")


def _whose(capture: Capture, facts: Mapping[str, Any], name: str, looked: Looked) -> Whose:
    ranks = {word.lower(): int(number) for word, number in _RANKS.findall(name)}
    stage = _STAGES.get(stage[1]) if (stage := _STAGE.search(name)) else None
    worker = _number(ranks, facts)
    own = {word: number for word, number in ranks.items() if word != "ep"}
    target = attrs.evolve(capture.target, coordinates={**capture.target.coordinates, **own})
    what = f"worker{'' if worker is None else worker}" + (f"_{stage}" if stage else "")
    entry: dict[str, Any] = {"worker": worker, "stage": stage}
    return Whose(what, target, entry, is_idle=not looked.steps)


def _number(ranks: dict[str, int], facts: Mapping[str, Any]) -> int | None:
    """Return the number of the scheduler in its engine."""
    if not facts.get("has_layout"):
        return ranks.get("tp")
    block = 0 if facts.get("has_dp_attention") else ranks.get("dp", 0)
    return int((block * facts["pp"] + ranks.get("pp", 0)) * facts["tp"] + ranks.get("tp", 0))


def _summary(window: Exported, *, has_merged: bool) -> Artifact:
    """Write the summary: what was asked, the answers, and the missing traces."""
    notes = window.notes
    missing, idle = _missing(window)
    if notes.get("way") == "worker":
        missing += window.unended
    if notes.get("merged") and not has_merged:
        missing.append("SGLang left no merged file; its log says why")
    answers = [one for one in window.ended if one["state"] == "ended" or one.get("why") == IDLE]
    missing += unseen([one.get("iterations") or 0 for one in answers], window.begun)
    short = fewer(window.capture.options, _ran(window))
    whys = notes.get("whys", [])
    return window.summary("sglang", missing, [*idle, *short, *whys], is_whole=not (missing or whys))


def _ran(window: Exported) -> list[tuple[str, int | None]]:
    """Return the number of forward steps that each worker recorded."""
    if window.notes.get("way") == "worker":
        return [(named(one), one.get("iterations")) for one in window.ended]
    return [
        (f"worker {one['worker']}" + (f", {one['stage']}" if one["stage"] else ""),
         one.get("iterations"))
        for one in window.found
    ]  # fmt: skip


def _missing(window: Exported) -> tuple[list[str], list[str]]:
    """Name the results that are missing, and the schedulers that were idle."""
    notes, facts, found = window.notes, window.facts, window.found
    if not notes:
        return [NOBODY_LEFT], []
    if notes["way"] == "worker":
        return refused(notes)
    expected = facts.get("workers", 1)
    seen = {one["worker"] for one in found}
    ran: dict[str, int] = notes.get("ran", {})
    rest = [int(number) for number, count in ran.items() if not count]
    idle = [f"worker {number}: {IDLE}" for number in rest if number not in seen]
    block = 1 if facts.get("has_dp_attention") else facts.get("tp", 1) * facts.get("pp", 1)
    there = len(seen) + block * len(idle)
    if notes.get("by_stage") and len(found) < 2 * expected:
        idle.append(f"{len(found)} of {2 * expected} stages were recorded in the window")
    if there >= expected:
        return [], idle
    what = f"{expected - there} of {expected} schedulers left no trace in {notes.get('folder')}"
    if facts.get("nodes", 1) > 1:
        return [f"{what} of this host; the other {facts['nodes'] - 1} have theirs"], []
    why = "its log says why"
    if notes.get("lost"):
        why = str(notes["lost"])
    elif notes.get("by_stage"):
        why = "a stage that never came, or requests that ended before it"
    elif any(ran.values()) and notes.get("skips"):
        why = "the window ended before all engine steps of iterations.skip had run; otherwise, "
        why += "its log says why"
    return [f"{what}: {why}"], idle
