"""One range in a window of its own: does this nsys see what this nvtx sends?

From 0.2.12 on nvtx asks the tool whether a domain is enabled, and nsys 2023.4 says no to all: there
are no ranges at all then, and nobody says so.
"""

from __future__ import annotations

import json
import sqlite3
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlprof import CaptureError
from rlprof_nsys._mark import DOMAIN
from rlprof_nsys._report import REPORT
from rlprof_nsys._shared import alone

if TYPE_CHECKING:
    from rlprof_nsys._session import Session

TEXT = "rlprof self-test"
_EXPORT_S = 30.0
_OTHERS_S = 20.0
"""How long to wait for the test of another process in the same session."""


def tested(session: Session, nvtx: Any, options: list[str], *, start_s: float) -> str:
    """Return what `self_test` does; of the processes in one session, one tries it for all."""
    place = session.program.folder
    if not place:
        return self_test(session, nvtx, options, start_s=start_s)
    known = Path(place) / f"self-test-{_version()}"
    with alone(known, until=time.monotonic() + _OTHERS_S) as is_alone:
        if not is_alone:
            raise CaptureError("another process tries it and does not end")
        text = known.read_text(encoding="utf-8")
        if text:
            return str(json.loads(text))
        found = self_test(session, nvtx, options, start_s=start_s)
        known.write_text(json.dumps(found), encoding="utf-8")
        return found


def self_test(session: Session, nvtx: Any, options: list[str], *, start_s: float) -> str:
    """Return why nsys sees no ranges, or could not be tried; empty: it sees them."""
    own = session.program.folder or None  # a killed program leaves nothing of it elsewhere
    with tempfile.TemporaryDirectory(prefix="rlprof-nsys-test-", dir=own) as name:
        folder = Path(name)
        session.start(folder, options, None, within_s=start_s)
        nvtx.push_range(TEXT, domain=DOMAIN)
        nvtx.pop_range(domain=DOMAIN)
        found = session.stop(folder, within_s=_EXPORT_S)
        if found.file != REPORT:
            raise CaptureError(found.why)
        if _has_range(session, folder):
            return ""
    version = _version()
    return (
        f"no ranges of phases: nsys does not see those of nvtx {version}; nvtx 0.2.11 is seen by "
        "nsys 2023.4, newer ones by newer nsys; or this process was forked and never called exec"
    )


def _has_range(session: Session, folder: Path) -> bool:
    tables = folder / "report.sqlite"
    said = session.program.call(
        "export", "--type=sqlite", f"--output={tables}", "--force-overwrite=true",
        str(folder / REPORT), timeout_s=_EXPORT_S,
    )  # fmt: skip
    if said.code != 0 or not tables.exists():
        raise CaptureError(f"nsys export: {said.sentence}")
    with closing(sqlite3.connect(tables)) as found:
        try:
            (count,) = found.execute(
                "SELECT count(*) FROM NVTX_EVENTS e LEFT JOIN StringIds s ON s.id = e.textId "
                "WHERE coalesce(e.text, s.value) = ?",
                (TEXT,),
            ).fetchone()
        except sqlite3.OperationalError:  # no such table: no range was seen
            return False
    return bool(count)


def _version() -> str:
    from importlib import metadata

    try:
        return metadata.version("nvtx")
    except metadata.PackageNotFoundError:
        return "of this environment"
