"""The helper process of exports; it is called with SECONDS FOLDER OUT ROOT…

It reads the files of core and the tool in FOLDER, lets the tool make artifacts in OUT, and writes
`exported.json` into FOLDER. If the tool raised nothing and made every artifact whole, the raw data
is deleted. More FOLDER OUT ROOT may follow: they are exported one after another.
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
from typing import Any

import attrs

from rlprof import plugins
from rlprof.errors import PluginError, shown
from rlprof.rundir import known
from rlprof.types import Artifact, Capture, Target, Window

RAW = "raw"
"""Below the scratch folder of a capture: the folder of the tool."""
LOG = "export.log"
"""Next to it: the output of the export."""
RESULT = "exported.json"
"""Next to it: the outcome of the export."""


def main(argv: list[str]) -> int:
    """Export captures one after another, at low priority, each within its time."""
    timeout_s, *paths = argv
    os.nice(10)
    folders, outs, roots = (map(Path, paths[start::3]) for start in range(3))
    for number, (folder, out, root) in enumerate(zip(folders, outs, roots, strict=True)):
        signal.alarm(int(float(timeout_s)) + 30)  # our parent may be dead; end in any case
        if number:
            _speak_into(folder / LOG)
        lock = os.open(folder, os.O_RDONLY)
        fcntl.flock(lock, fcntl.LOCK_EX)  # a helper that outlived its process may be at it
        if result_of(folder) is None:
            export(folder, out, root)
        os.close(lock)
    return 0


def _speak_into(path: Path) -> None:
    """Send all further output to the file *path*."""
    sys.stdout.flush()
    with path.open("wb") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)


def result_of(folder: Path) -> dict[str, Any] | None:
    """Return the outcome of the export of *folder*; None: it has not ended."""
    try:
        result: dict[str, Any] = json.loads((folder / RESULT).read_bytes())
    except (OSError, ValueError):
        return None
    return result


def export(folder: Path, out: Path, root: Path) -> dict[str, Any]:
    """Let the tool export the data in *folder*; write the outcome there, and return it."""
    began = time.monotonic()
    artifacts: list[Artifact] = []
    error = ""
    try:
        capture = read_capture(folder)
        plugin = _plugin_of(capture)
        out.mkdir(parents=True, exist_ok=True)
        hooks = plugins.hooks(plugin())
        found = hooks.export(capture=capture, folder=folder / RAW, out=out)
        artifacts, error = _checked(_listed(found), out, root)
    except (Exception, SystemExit) as exc:  # code of a plugin: its message goes into the manifest
        error = f"{type(exc).__name__}: {exc}"
    result: dict[str, Any] = {
        "artifacts": [attrs.asdict(artifact) for artifact in artifacts],
        "seconds": round(time.monotonic() - began, 6),
        "error": error,
    }
    draft = folder / f"{RESULT}.tmp"
    draft.write_text(json.dumps(result))
    draft.rename(folder / RESULT)
    if is_finished(result):  # last: a kill in between loses nothing
        shutil.rmtree(folder / RAW, ignore_errors=True)
    return result


def is_finished(result: Mapping[str, Any]) -> bool:
    """Whether the raw data of *result* is no longer needed."""
    whole = all(artifact["status"] == "whole" for artifact in result["artifacts"])
    return whole and not result["error"]


def read_capture(folder: Path) -> Capture:
    """Read the `capture.json` that core wrote before `start`."""
    data: dict[str, Any] = json.loads((folder / "capture.json").read_bytes())
    data["target"] = known(Target, data["target"])
    data["window"] = known(Window, data["window"])
    return known(Capture, data)


def _plugin_of(capture: Capture) -> type[Any]:
    """Load the class that recorded *capture*; if it is missing, say what to install."""
    module, _, name = capture.plugin.partition(":")
    try:
        plugin = load_class(capture.plugin)
    except ModuleNotFoundError as exc:
        offered = plugins.KNOWN.get((capture.kind, capture.tool))
        what = f"pip install {offered}" if offered else "install what brings it"
        missing = f"{capture.tool} needs the module {exc.name}, which is not installed here"
        raise PluginError(f"{missing}; {what}") from exc
    except AttributeError as exc:
        if module != "__main__":
            raise
        what = "is a class of the script that ran, which no other process can import"
        raise PluginError(f"{name} {what}") from exc
    marked = (getattr_static(plugin, one, None) for one in dir(plugin))
    if not any(hasattr(one, "rlprof_impl") for one in marked):  # nothing else is called
        raise PluginError(f"{capture.plugin} is no plugin: it marks no method with hookimpl")
    return plugin


def load_class(plugin: str) -> type[Any]:
    """Import `module:qualified.name`."""
    module, _, name = plugin.partition(":")
    found: Any = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found  # type: ignore[no-any-return]


def _listed(found: Any) -> list[Artifact]:
    """Return the result of `export`, or raise with the expected type."""
    if isinstance(found, Artifact):
        raise PluginError(f"export must return a list of rlprof.Artifact, got {shown(found)}")
    is_one = isinstance(found, str) or not isinstance(found, Iterable | None)
    artifacts = [found] if is_one else list(found or ())
    for artifact in artifacts:
        if not isinstance(artifact, Artifact):
            raise PluginError(f"export must return rlprof.Artifact, got {shown(artifact)}")
        for field, choice in (("kind", ("trace", "files")), ("status", ("whole", "partial"))):
            got = getattr(artifact, field)
            if got not in choice:
                what = f"{field} must be {' or '.join(choice)}, got {shown(got)}"
                raise PluginError(f"artifact {shown(artifact.path)}: {what}")
    return artifacts


def _checked(named: list[Artifact], out: Path, root: Path) -> tuple[list[Artifact], str]:
    """Return the readable artifacts, and the faults of the others."""
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
    with file.open("rb") as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return attrs.evolve(
        artifact,
        path=str(file.relative_to(root.resolve())),
        size=file.stat().st_size,
        sha256=digest.hexdigest(),
    )
