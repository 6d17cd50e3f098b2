"""The helper process of exports; it is called with SECONDS FOLDER OUT ROOT.

It reads what core and the tool left in FOLDER, lets the tool make artifacts in OUT, and writes
`exported.json` into FOLDER. If the tool raised nothing and left every artifact whole, the raw
data are deleted. More FOLDER OUT ROOT may follow: they are exported one after another.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib
import json
import os
import shutil
import signal
import sys
import time
from collections.abc import Iterable, Mapping
from inspect import getattr_static
from pathlib import Path
from types import NoneType
from typing import Any

import attrs

from rlprof import plugins
from rlprof.errors import PluginError, shown
from rlprof.rundir import known, open_regular, read_regular
from rlprof.types import Artifact, Capture, Target, Window

RAW = "raw"
"""Below a capture's scratch folder: the folder that is the tool's own."""
LOG = "export.log"
"""Beside it: what the export has printed."""
RESULT = "exported.json"
"""Beside it: what came of the export."""


def main(argv: list[str]) -> int:
    """Export captures one after another, at low priority, each within its time."""
    timeout_s, *rest = argv
    os.nice(10)
    for first in range(0, len(rest), 3):
        folder, out, root = map(Path, rest[first : first + 3])
        signal.alarm(int(float(timeout_s)) + 30)  # who started us may be dead; end all the same
        lock = os.open(folder, os.O_RDONLY)
        fcntl.flock(lock, fcntl.LOCK_EX)  # salvaging, another may be at it still
        if first:
            _speak_into(folder / LOG)
        if not is_done(folder):
            export(folder, out, root)
        os.close(lock)
    return 0


def _speak_into(file: Path) -> None:
    """Let what is printed from now on go into *file*."""
    sys.stdout.flush()
    sys.stderr.flush()
    log = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    for stream in (1, 2):
        os.dup2(log, stream)
    os.close(log)


def is_done(folder: Path) -> bool:
    """Whether somebody has exported *folder* already, and nobody has read of it."""
    try:
        return not json.loads(read_regular(folder / RESULT, follow=False))["error"]
    except (OSError, ValueError, KeyError, TypeError):
        return False


def export(folder: Path, out: Path, root: Path) -> None:
    """Let the tool export what lies in *folder*; the outcome is in `exported.json` there."""
    began = time.monotonic()
    artifacts: list[Artifact] = []
    error = ""
    try:
        capture = read_capture(folder)
        plugin = _plugin_of(capture)
        out.mkdir(parents=True, exist_ok=True)
        hooks = plugins.hooks(capture.kind, plugin())
        found = hooks.export(capture=capture, folder=folder / RAW, out=out)
        artifacts, error = _checked(_listed(found), out, root)
    except (
        Exception,
        SystemExit,
    ) as exc:  # a stranger's code; what it raised goes into the manifest
        error = f"{type(exc).__name__}: {exc}"
    result = {
        "artifacts": [attrs.asdict(artifact) for artifact in artifacts],
        "seconds": round(time.monotonic() - began, 6),
        "error": error,
    }
    draft = folder / f"{RESULT}.tmp"
    draft.write_text(json.dumps(result))
    draft.rename(folder / RESULT)
    if is_finished(result):  # last: who is killed in between has lost nothing
        shutil.rmtree(folder / RAW, ignore_errors=True)


def is_finished(result: Mapping[str, Any]) -> bool:
    """Whether nobody needs the raw data any more that *result* came of."""
    whole = all(artifact["status"] == "whole" for artifact in result["artifacts"])
    return whole and not result["error"]


def read_capture(folder: Path) -> Capture:
    """Read the `capture.json` that core wrote before `start`."""
    data: dict[str, Any] = json.loads(read_regular(folder / "capture.json", follow=False))
    data["target"] = known(Target, data["target"])
    data["window"] = known(Window, data["window"])
    return known(Capture, data)


def _plugin_of(capture: Capture) -> type[Any]:
    """Load the class that recorded *capture*; say what to install where it is not there."""
    try:
        plugin = load_class(capture.plugin)
    except ModuleNotFoundError as exc:
        module = capture.plugin.partition(":")[0]
        if exc.name is None or not f"{module}.".startswith(f"{exc.name}."):
            raise PluginError(f"{capture.tool} needs {exc.name}, which is not installed") from exc
        offered = plugins.KNOWN.get((capture.kind, capture.tool))
        what = f"pip install {offered}" if offered else f"install what brings the module {module}"
        raise PluginError(f"{capture.kind} {capture.tool!r} is not installed here; {what}") from exc
    if not _marks_hooks(plugin):  # nothing is called that is no plugin
        raise PluginError(f"{capture.plugin} is no plugin: it marks no method with hookimpl")
    return plugin


def _marks_hooks(plugin: Any) -> bool:
    names = dir(plugin) if isinstance(plugin, type) else ()
    return any(hasattr(getattr_static(plugin, name, None), "rlprof_impl") for name in names)


def load_class(plugin: str) -> type[Any]:
    """Import `module:qualified.name`."""
    module, _, name = plugin.partition(":")
    found: Any = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found  # type: ignore[no-any-return]


def _listed(found: Any) -> list[Artifact]:
    """Return what `export` returned, or say what it should have been."""
    if isinstance(found, (str, Artifact)) or not isinstance(found, (Iterable, NoneType)):
        what = "a list of rlprof.Artifact" if isinstance(found, Artifact) else "rlprof.Artifact"
        raise PluginError(f"export must return {what}, got {shown(found)}")
    artifacts = list(found or ())
    for artifact in artifacts:
        if not isinstance(artifact, Artifact):
            raise PluginError(f"export must return rlprof.Artifact, got {shown(artifact)}")
        for field, choice in (("kind", ("trace", "files")), ("status", ("whole", "partial"))):
            if getattr(artifact, field) not in choice:
                got, which = shown(getattr(artifact, field)), shown(artifact.path)
                raise PluginError(
                    f"artifact {which}: {field} must be {' or '.join(choice)}, got {got}"
                )
    return artifacts


def _checked(named: list[Artifact], out: Path, root: Path) -> tuple[list[Artifact], str]:
    """Return the artifacts that can be read, and what is wrong with the others."""
    from rlprof.session._trace_file import fault_of  # nothing else needs gzip

    artifacts, faults = [], []
    for artifact in named:
        file = _file_of(artifact, out)
        if fault := fault_of(artifact, file):
            faults.append(f"artifact {artifact.path!r} {fault}")
        else:
            artifacts.append(_filled_in(artifact, file, root))
    return artifacts, "; ".join(faults)


def _file_of(artifact: Artifact, out: Path) -> Path:
    """Return the file of *artifact*; raise PluginError if export has not written it into *out*."""
    file = (out / artifact.path).resolve()
    if not file.is_relative_to(out.resolve()):
        raise PluginError(f"artifact {artifact.path!r} lies outside its folder {out}")
    if not file.is_file():
        what = "which is a folder; name its files" if file.is_dir() else "and named it all the same"
        raise PluginError(f"export has not written {artifact.path!r} into out, {what}")
    return file


def _filled_in(artifact: Artifact, file: Path, root: Path) -> Artifact:
    """Add size and checksum, and name the file relative to the run folder."""
    digest = hashlib.sha256()
    with open_regular(file) as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return attrs.evolve(
        artifact,
        path=str(file.relative_to(root.resolve())),
        size=file.stat().st_size,
        sha256=digest.hexdigest(),
    )
