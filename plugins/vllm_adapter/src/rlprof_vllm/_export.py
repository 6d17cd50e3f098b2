"""What becomes of a window's files: traces on the clock of their host, and who answered what."""

from __future__ import annotations

import gzip
import json
import re
import shutil
import tempfile
import zlib
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from rlprof import Artifact
from rlprof_torch.kineto import finish
from rlprof_vllm._native import FILES
from rlprof_vllm._requests import FILE as REQUESTS
from rlprof_vllm._requests import trace_events

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rlprof import Capture, Target

NOTES = "vllm.json"
"""In the window's folder: the way, what was known of the engine, and what the workers answered."""

_TRACE = (".pt.trace.json", ".pt.trace.json.gz")
_RANK = re.compile(r"(?:^|_|-)rank-?(\d+)[._-]")
_STEP = re.compile(rb'"name": "execute_[^"]*generation_')
_PID = re.compile(rb'"cat": "(?:cpu_op|user_annotation)"[^{}]*?"pid": (\d+)')
_OWN_RANK = re.compile(rb'"distributedInfo": \{[^{}]*?"rank": (\d+)')
_BLOCK = 4 << 20
_LONGEST = 300
"""Bytes of the longest name of an engine step."""


def exported(capture: Capture, folder: Path, out: Path) -> list[Artifact]:
    """Make all of them."""
    try:
        notes = json.loads((folder / NOTES).read_bytes())
    except (OSError, ValueError):  # the process that held the engine has died
        notes = {}
    made = []
    if (folder / REQUESTS).exists():
        made.append(_requests(capture, folder / REQUESTS, out))
    found: list[dict[str, Any]] = []
    raws = sorted((folder / FILES).glob("*"))
    made += [_native(capture, raw, out, notes, found) for raw in raws]
    made.append(_summary(capture, notes, found, out))
    return made


def _header(capture: Capture, target: Target) -> dict[str, Any]:
    return {
        "run": capture.run_id,
        "target": attrs.asdict(target),
        "window": attrs.asdict(capture.window),
        "tool": capture.tool,
        "host": capture.host,
        "pid": capture.pid,
    }


def _requests(capture: Capture, file: Path, out: Path) -> Artifact:
    name = f"{capture.stem}_requests.trace.json.gz"
    note, events = "", 0
    try:
        made = trace_events(file, capture.pid)
        first = next(made)
    except (OSError, ValueError, KeyError, TypeError) as exc:
        shutil.copyfile(file, out / f"{capture.stem}_requests.jsonl")
        return Artifact(f"{capture.stem}_requests.jsonl", "files", "json-lines", "partial",
                        f"its lines cannot be read: {exc}")  # fmt: skip
    header = {**_header(capture, capture.target), "epoch_ns": first["epoch_ns"], "error_ns": None}
    with gzip.open(out / name, "wt", encoding="utf-8", compresslevel=4) as stream:
        stream.write(f'{{"rlprof": {json.dumps(header)},\n"traceEvents": [')
        for event in made:
            stream.write(("," if events else "") + "\n" + json.dumps(event))
            events += 1
        stream.write("\n]}\n")
    if not first["requests"]:
        note = "idle: the engine had no request in the window"
    return Artifact(name, "trace", "chrome-trace", note=note, events=events)


def _native(
    capture: Capture, raw: Path, out: Path, notes: dict[str, Any], found: list[dict[str, Any]]
) -> Artifact:
    """Make a trace of one worker's file; what is no trace is kept as it is."""
    if not raw.name.endswith(_TRACE):
        name = f"{capture.stem}_{raw.name}"
        if raw.is_dir():  # torch_npu writes a folder per worker
            shutil.copytree(raw, out / name)
            files = [path for path in (out / name).rglob("*") if path.is_file()]
            inner = max(files, key=lambda path: path.stat().st_size, default=None)
            if inner is not None:
                return Artifact(str(inner.relative_to(out)), "files", "ascend", note=f"in {name}")
        shutil.copyfile(raw, out / name)
        if not raw.stat().st_size:
            return Artifact(name, "files", "text", "partial", "is empty")
        return Artifact(name, "files", "text")
    try:
        with _unpacked(raw) as plain:
            return _trace(capture, raw, plain, out, notes=notes, found=found)
    except (ValueError, EOFError, zlib.error, gzip.BadGzipFile) as exc:
        name = f"{capture.stem}_{raw.name}"
        shutil.copyfile(raw, out / name)
        why = str(exc).replace(str(raw.parent), "").strip("/")
        return Artifact(name, "files", "chrome-trace", "partial", f"cannot be read: {why}")


@contextmanager
def _unpacked(raw: Path) -> Iterator[Path]:
    """Give a trace as plain text, beside the raw files and not among them."""
    if not raw.name.endswith(".gz"):
        yield raw
        return
    with tempfile.TemporaryDirectory(dir=raw.parent.parent) as folder:
        plain = Path(folder, raw.name.removesuffix(".gz"))
        with gzip.open(raw, "rb") as packed, plain.open("wb") as unpacked:
            shutil.copyfileobj(packed, unpacked)
        yield plain


def _trace(
    capture: Capture,
    raw: Path,
    plain: Path,
    out: Path,
    *,
    notes: dict[str, Any],
    found: list[dict[str, Any]],
) -> Artifact:
    """Make a trace of *plain*; what is told of it goes into *found*."""
    named = _RANK.search(raw.name)  # vLLM 0.11.0 does not say it there
    steps, pid, rank = _looked(plain)
    worker = int(named[1]) if named else rank
    is_frontend = "async_llm" in raw.name
    facts = notes.get("facts") or {}
    own = {} if is_frontend or worker is None else _coordinates(worker, facts)
    target = attrs.evolve(capture.target, coordinates={**capture.target.coordinates, **own})
    told = {"file": raw.name, "worker": worker, "pid": pid, "iterations": steps}
    what = "frontend" if is_frontend else f"worker{'' if worker is None else worker}"
    name = f"{capture.stem}_{what}_enginepid{pid}.pt.trace.json.gz"
    done = finish(plain, out / name, header=_header(capture, target))
    found.append({**told, "frontend": is_frontend})
    note = ""
    if not steps and not is_frontend:
        note = "idle: the engine had no step in the window"
    if done.truncated:
        note = "the engine's trace was cut: what was whole is kept"
    is_cut = bool(done.truncated or done.dropped)
    return Artifact(
        name,
        "trace",
        "chrome-trace",
        "partial" if is_cut else "whole",
        note,
        events=done.events,
        text_size=done.text_size,
    )


def _coordinates(worker: int, facts: dict[str, Any]) -> dict[str, int]:
    if not facts.get("has_layout"):
        return {"worker": worker}
    return {"tp": worker % facts["tp"], "pp": worker // facts["tp"] % facts["pp"]}


def _looked(file: Path) -> tuple[int, int, int | None]:
    """Count the engine steps in a raw trace, and find whose it is: its process and its rank."""
    steps, pid, rest = 0, 0, b""
    rank: int | None = None
    for block in _blocks(file):
        text = rest + block
        steps += sum(step.end() > len(rest) for step in _STEP.finditer(text))
        if not pid and (mine := _PID.search(text)):
            pid = int(mine[1])
        if rank is None and (own := _OWN_RANK.search(text)):
            rank = int(own[1])
        rest = text[-_LONGEST:]
    return steps, pid, rank


def _blocks(file: Path) -> Iterator[bytes]:
    with file.open("rb") as stream:
        while block := stream.read(_BLOCK):
            yield block


def _summary(
    capture: Capture, notes: dict[str, Any], found: list[dict[str, Any]], out: Path
) -> Artifact:
    """Say who was asked, who answered, and whose trace is not there."""
    name = f"{capture.stem}_vllm.json"
    missing = _missing(notes, found)
    said = {**notes, "traces": found, "missing": missing}
    (out / name).write_text(json.dumps(said, indent=1, default=str) + "\n", encoding="utf-8")
    told = [f"closed early: {notes['cut']}"] if notes.get("cut") else []
    note = "; ".join([*told, *missing])
    return Artifact(name, "files", "json", "partial" if missing else "whole", note)


def _missing(notes: dict[str, Any], found: list[dict[str, Any]]) -> list[str]:
    """Name what should be there and is not."""
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
    return [f"{what}; vLLM says why in its log alone"]
