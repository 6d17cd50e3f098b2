"""Turns a window's files into traces on the clock of their host, and a summary of the answers."""

from __future__ import annotations

import json
import re
from functools import partial
from typing import TYPE_CHECKING, Any

import attrs

from rlprof import Artifact
from rlprof_engine.answers import fewer, unseen
from rlprof_engine.recording import IDLE
from rlprof_engine.requests import FILE as REQUESTS
from rlprof_engine.requests import begun_in, trace_of
from rlprof_engine.traces import Looked, Whose, artifact_of
from rlprof_sglang._facts import SPANS, release
from rlprof_sglang._native import FILES

if TYPE_CHECKING:
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
    try:
        notes = json.loads((folder / NOTES).read_bytes())
    except (OSError, ValueError):  # the process that held the engine has died
        notes = {}
    made, begun = [], 0
    is_alone = (notes.get("facts") or {}).get("dp") == 1  # idle replicas run steps, too
    if (folder / REQUESTS).exists():
        begun = begun_in(folder / REQUESTS) if is_alone else 0
        ended = (notes.get("answers") or {}).get("ended") or []
        steps = sum(one.get("iterations") or 0 for one in ended) if is_alone else 0
        made.append(trace_of(capture, folder / REQUESTS, out, steps=steps))
    found: list[dict[str, Any]] = []
    raws = sorted((folder / FILES).glob("*"))
    whose = partial(_whose, capture, notes.get("facts") or {}, {raw.name for raw in raws})
    merged = [raw for raw in raws if raw.name.startswith("merged-")]
    made += [
        artifact_of(capture, raw, out, step=_STEP, whose=whose, found=found)
        for raw in raws
        if raw not in merged
    ]
    made += [_as_it_is(capture, raw, out) for raw in merged]
    made.append(_summary(capture, notes, found, out, begun, has_merged=bool(merged)))
    return made


def _as_it_is(capture: Capture, raw: Path, out: Path) -> Artifact:
    """Keep SGLang's merged file unchanged; its traces are also exported one by one."""
    name = f"{capture.stem}_{raw.name}"
    (out / name).write_bytes(raw.read_bytes())
    return Artifact(name, "files", "chrome-trace", note="merged by SGLang")


def _whose(
    capture: Capture, facts: dict[str, Any], names: set[str], name: str, looked: Looked
) -> Whose:
    ranks = {word.lower(): int(number) for word, number in _RANKS.findall(name)}
    stage = _STAGES.get(stage[1]) if (stage := _STAGE.search(name)) else None
    if stage is None:  # our stop ended it, so SGLang names no stage; the other stage was over
        others = {"EXTEND": "decode", "DECODE": "prefill"}
        there = (other for other in others if _of_stage(name, other) in names)
        stage = next((others[other] for other in there), None)
    worker = _number(ranks, facts)
    own = {word: number for word, number in ranks.items() if word != "ep"}
    target = attrs.evolve(capture.target, coordinates={**capture.target.coordinates, **own})
    what = f"worker{'' if worker is None else worker}" + (f"_{stage}" if stage else "")
    # Before 0.5.11 steps have no spans, and cannot be counted.
    counts = release(str(facts.get("version") or "")) >= SPANS or bool(looked.steps)
    told: dict[str, Any] = {"worker": worker, "stage": stage}
    if not counts:
        told["iterations"] = None
    return Whose(what, target, told, is_idle=counts and not looked.steps)


def _of_stage(name: str, stage: str) -> str:
    return name.replace(".trace.json", f"-{stage}.trace.json")


def _number(ranks: dict[str, int], facts: dict[str, Any]) -> int | None:
    """Return the number of the scheduler in its engine."""
    if not facts.get("has_layout"):
        return ranks.get("tp")
    block = 0 if facts.get("has_dp_attention") else ranks.get("dp", 0)
    return int((block * facts["pp"] + ranks.get("pp", 0)) * facts["tp"] + ranks.get("tp", 0))


def _summary(
    capture: Capture,
    notes: dict[str, Any],
    found: list[dict[str, Any]],
    out: Path,
    begun: int,
    *,
    has_merged: bool,
) -> Artifact:
    """Write the summary: what was asked, the answers, and the missing traces."""
    name = f"{capture.stem}_sglang.json"
    missing, idle = _missing(notes, found)
    if notes.get("merged") and not has_merged:
        missing.append("SGLang left no merged file; its log says why")
    ended = (notes.get("answers") or {}).get("ended") or []
    idle_or_ended = [one for one in ended if one["state"] == "ended" or one.get("why") == IDLE]
    missing += unseen([one.get("iterations") or 0 for one in idle_or_ended], begun)
    said = {**notes, "traces": found, "missing": missing}
    (out / name).write_text(json.dumps(said, indent=1, default=str) + "\n", encoding="utf-8")
    told = [f"closed early: {notes['cut']}"] if notes.get("cut") else []
    short = fewer(capture.options, _ran(notes, found))
    whys = notes.get("whys") or []
    note = "; ".join([*told, *missing, *idle, *short, *whys])
    return Artifact(name, "files", "json", "partial" if missing or whys else "whole", note)


def _ran(notes: dict[str, Any], found: list[dict[str, Any]]) -> list[tuple[str, int | None]]:
    """Return the number of forward steps that each worker recorded."""
    if notes.get("way") == "worker":
        ended = (notes.get("answers") or {}).get("ended") or []
        return [(f"worker {one.get('worker', '?')}", one.get("iterations")) for one in ended]
    return [
        (f"worker {one['worker']}" + (f", {one['stage']}" if one["stage"] else ""),
         one.get("iterations"))
        for one in found
    ]  # fmt: skip


def _missing(notes: dict[str, Any], found: list[dict[str, Any]]) -> tuple[list[str], list[str]]:
    """Name the results that are missing, and the schedulers that were idle."""
    if not notes:
        return ["the process that held the engine ended inside the window"], []
    facts, answers = notes.get("facts") or {}, notes.get("answers") or {}
    if notes["way"] == "worker":
        bad = {"failed", "refused", "idle"}
        told = [one for part in answers.values() for one in part if one["state"] in bad]
        idle = [one for one in told if one.get("why") == IDLE]
        lines = [f"worker {one.get('worker', '?')}: {one.get('why')}" for one in told]
        return (
            [line for one, line in zip(told, lines, strict=True) if one not in idle],
            [line for one, line in zip(told, lines, strict=True) if one in idle],
        )
    expected = facts.get("workers") or 1
    seen = {one["worker"] for one in found}
    ran: dict[str, int] = notes.get("ran") or {}
    rest = [int(number) for number, count in ran.items() if not count]
    idle = [f"worker {number}: {IDLE}" for number in rest if number not in seen]
    block = 1 if facts.get("has_dp_attention") else facts.get("tp", 1) * facts.get("pp", 1)
    there = len(seen) + block * len(idle)
    halves = _half(found) if notes.get("by_stage") else []
    if there >= expected:
        return [], [*idle, *halves]
    what = f"{expected - there} of {expected} schedulers left no trace in {notes.get('folder')}"
    if facts.get("nodes", 1) > 1:
        return [f"{what} of this host; the other {facts['nodes'] - 1} have theirs"], []
    why = "before SGLang 0.5.11 an idle scheduler leaves none; otherwise, its log says why"
    if notes.get("lost"):
        why = str(notes["lost"])
    elif notes.get("by_stage"):
        why = "a stage that never came, or requests that ended before it"
    elif any(ran.values()) and notes.get("skips"):
        why = "the window ended before all engine steps of iterations.skip had run; otherwise, "
        why += "its log says why"
    return [f"{what}: {why}"], halves


def _half(found: list[dict[str, Any]]) -> list[str]:
    """Name the schedulers with only one stage; if our stop ended it, the stage is unknown."""
    stages: dict[int, set[str]] = {}
    for one in found:
        stages.setdefault(one["worker"], set()).add(str(one["stage"]))
    return [
        f"worker {worker}: {stage} was not recorded in the window"
        for worker, there in sorted(stages.items())
        for stage in (("one of the two stages",) if "None" in there else ("prefill", "decode"))
        if stage not in there
    ]
