"""The artifacts of a capture: its tool makes them, and core checks them.

The manifest must not call a file whole that no reader can open. The check is cheap if the plugin
counted the bytes of its trace; only other traces are unpacked.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import pkgutil
import re
import zlib
from collections.abc import Iterable
from functools import partial
from inspect import getattr_static
from typing import TYPE_CHECKING, Any

import attrs

from rlprof import plugins
from rlprof.distributions import KNOWN, how_to_install
from rlprof.errors import PluginError, shown
from rlprof.rundir import known
from rlprof.session._job import RAW
from rlprof.types import Artifact, Capture, Target, Window

if TYPE_CHECKING:
    from pathlib import Path

_BLOCK = 1 << 20
_BEGIN = re.compile(rb'\s*\{\s*"rlprof"\s*:')


def made_of(folder: Path, out: Path, root: Path) -> tuple[list[Artifact], str]:
    """Let the tool export the data of the capture in *folder* into *out*.

    Return the readable artifacts, by paths relative to *root*, the run folder, and the faults.
    """
    capture = _read_capture(folder)
    plugin = _plugin_of(capture)
    out.mkdir(parents=True, exist_ok=True)
    found = plugins.hooks(plugin()).export(capture=capture, folder=folder / RAW, out=out)
    artifacts, faults = [], []
    for artifact in _listed(found):
        file = _file_of(artifact, out)
        if fault := _fault_of(artifact, file):
            faults.append(f"artifact {artifact.path!r} {fault}")
        else:
            artifacts.append(_filled_in(artifact, file, root))
    return artifacts, "; ".join(faults)


def _read_capture(folder: Path) -> Capture:
    """Read the `capture.json` that core wrote before `start`."""
    data: dict[str, Any] = json.loads((folder / "capture.json").read_bytes())
    data["target"] = known(Target, data["target"])
    data["window"] = known(Window, data["window"])
    return known(Capture, data)


def _plugin_of(capture: Capture) -> type[Any]:
    """Load the class that recorded *capture*; if it is missing, say what to install."""
    module, _, name = capture.plugin.partition(":")
    try:
        plugin: type[Any] = pkgutil.resolve_name(capture.plugin)
    except ModuleNotFoundError as exc:
        offered = KNOWN.get((capture.kind, capture.tool))
        what = how_to_install(offered) if offered else "install what brings it"
        missing = f"{capture.tool} needs the module {exc.name}, which is not installed here"
        raise PluginError(f"{missing}; {what}") from exc
    except (AttributeError, ValueError) as exc:
        if module != "__main__":
            raise
        what = "is a class of the script that ran, which no other process can import"
        raise PluginError(f"{name} {what}") from exc
    marked = (getattr_static(plugin, one, None) for one in dir(plugin))
    if not any(hasattr(one, "rlprof_impl") for one in marked):  # nothing else is called
        raise PluginError(f"{capture.plugin} is no plugin: it marks no method with hookimpl")
    return plugin


def _listed(found: Any) -> list[Artifact]:
    """Return the result of `export`, or raise with the expected type."""
    if isinstance(found, str) or not isinstance(found, Iterable | None):
        raise PluginError(f"export must return a list of rlprof.Artifact, got {shown(found)}")
    artifacts = list(found or ())
    for artifact in artifacts:
        if not isinstance(artifact, Artifact):
            raise PluginError(f"export must return rlprof.Artifact, got {shown(artifact)}")
        for field, choice in (("kind", ("trace", "files")), ("status", ("whole", "partial"))):
            got = getattr(artifact, field)
            if got not in choice:
                what = f"{field} must be {' or '.join(choice)}, got {shown(got)}"
                raise PluginError(f"artifact {shown(artifact.path)}: {what}")
    return artifacts


def _file_of(artifact: Artifact, out: Path) -> Path:
    """Return the file of *artifact*; raise PluginError if export has not written it into *out*."""
    file = (out / artifact.path).resolve()
    if not file.is_relative_to(out.resolve()):
        raise PluginError(f"artifact {artifact.path!r} lies outside its folder {out}")
    if not file.is_file():
        what = "which is a folder; name its files" if file.is_dir() else "and named it all the same"
        raise PluginError(f"export has not written {artifact.path!r} into out, {what}")
    return file


def _fault_of(artifact: Artifact, file: Path) -> str:
    """Say what is wrong with *file* and what to do; empty if nothing was found.

    A partial artifact may be empty, and its trace may be cut.
    """
    is_whole = artifact.status == "whole"
    if not file.stat().st_size:
        return 'is empty; write it, or return it with status="partial"' if is_whole else ""
    if artifact.kind != "trace":
        return ""
    try:
        with file.open("rb") as packed, gzip.GzipFile(fileobj=packed) as text:
            tail = text.read(_BLOCK if is_whole else 256)
            if not _BEGIN.match(tail):
                return 'does not begin with the key "rlprof"; write capture.header under it first'
            if not is_whole:
                return ""
            if artifact.text_size is not None:
                packed.seek(-4, 2)
                counted = int.from_bytes(packed.read(4), "little")
                size, is_cut = artifact.text_size, counted != artifact.text_size & 0xFFFFFFFF
                return f"is cut: its gzip does not end after {size} bytes of text" if is_cut else ""
            for block in iter(partial(text.read, _BLOCK), b""):
                tail = tail[-64:] + block
    except EOFError:
        return "is cut: its gzip has no end; close the file first" if is_whole else ""
    except (gzip.BadGzipFile, zlib.error) as exc:
        return f"is not gzip ({exc}); write a trace with gzip.open"
    ends = tail.rstrip().endswith(b"}")
    return "" if ends else "is cut: its JSON has no end; write all of it, or mark it as partial"


def _filled_in(artifact: Artifact, file: Path, root: Path) -> Artifact:
    """Add size and checksum, and name the file relative to the run folder."""
    digest = hashlib.sha256()
    with file.open("rb") as stream:
        while block := stream.read(_BLOCK):
            digest.update(block)
    return attrs.evolve(
        artifact,
        path=str(file.relative_to(root.resolve())),
        size=file.stat().st_size,
        sha256=digest.hexdigest(),
    )
