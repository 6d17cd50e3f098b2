"""The arguments of an engine that drives: a run, real orders, and a tool to record with."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

import rlprof
from rlprof.config import check_config
from rlprof.session._engines import engine_track
from rlprof_testing import _kit_tool

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Iterator, Mapping

    import pytest

    from rlprof.session._loops import Link

TOOL = "rlprof_kit"
"""The name, in a config, of the tool that records inside an engine; also the tool's module."""

_ENTRY = f"[rlprof.tools]\n{TOOL} = {TOOL}:PhaseTool\n"
_METADATA = "Metadata-Version: 2.1\nName: rlprof-kit\nVersion: 0\n"
_ANY_THREAD = '\n\nPhaseTool.runs_on = "process"\n'


def offer_tool(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install the tool into *site*, on the import path of this process and its children."""
    info = site / "rlprof_kit-0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(_METADATA)
    (info / "entry_points.txt").write_text(_ENTRY)
    source = Path(_kit_tool.__file__).read_text(
        encoding="utf-8"
    )  # the engine's processes may lack pytest
    (site / f"{TOOL}.py").write_text(source + _ANY_THREAD, encoding="utf-8")
    monkeypatch.syspath_prepend(str(site))
    monkeypatch.setenv("PYTHONPATH", str(site), prepend=os.pathsep)
    monkeypatch.delitem(sys.modules, TOOL, raising=False)


@contextmanager
def leading(config: Mapping[str, Any]) -> Iterator[rlprof.Session]:
    """Open the session that an engine's processes follow; wait until their sessions have closed."""
    with rlprof.open(config, role="driver", rank=0, world_size=1) as prof:
        assert isinstance(prof, rlprof.Session), "rlprof is off; see its log"
        yield prof


def linked(
    prof: rlprof.Session,
    config: Mapping[str, Any],
    handle: Any,
    loop: asyncio.AbstractEventLoop | None,
) -> Link:
    """Return the link to an engine as `prof.attach` makes it, with all arguments of its hooks."""
    checked, _ = check_config(config)
    made = engine_track(
        checked, prof.context, handle,
        role="rollout", replica=0, ranks=None, world_size=None, loop=loop, coordinates=None,
    )  # fmt: skip
    assert made is not None, "the kit's config has no such role"
    track, (use,) = made
    assert track.link is not None, "the kit's config has no engine"
    return attrs.evolve(track.link, workers=track.link.given(use)["workers"])
