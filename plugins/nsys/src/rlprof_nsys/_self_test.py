"""One range in a test window: does this nsys see the ranges of this nvtx?

From 0.2.12 on, nvtx asks the tool whether a domain is enabled. nsys 2023.4 answers no to all, so
there are no ranges and no error.
"""

from __future__ import annotations

import fcntl
import json
import sqlite3
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from rlprof import CaptureError
from rlprof_nsys._convert import imported
from rlprof_nsys._mark import DOMAIN
from rlprof_nsys._report import RAW, REPORT

if TYPE_CHECKING:
    from rlprof_nsys._session import Session

TEXT = "rlprof self-test"
_EXPORT_S = 30.0
_OTHERS_S = 20.0
"""How long to wait while another process in the same session runs the test."""
_POLL_S = 0.05


def tested(session: Session, nvtx: Any, options: list[str], *, start_s: float) -> str:
    """Return the result of `self_test`, which one process runs for all of its session."""
    place = session.program.folder
    if not place:
        return self_test(session, nvtx, options, start_s=start_s)
    known = Path(place) / f"self-test-{_version()}"
    with known.open("a+", encoding="utf-8") as file:
        end = time.monotonic() + _OTHERS_S
        while not _is_locked(file):
            if time.monotonic() >= end:
                raise CaptureError("another process is running the test and does not finish")
            time.sleep(_POLL_S)
        file.seek(0)
        text = file.read()
        if text:
            return str(json.loads(text))
        found = self_test(session, nvtx, options, start_s=start_s)
        file.write(json.dumps(found))
        return found


def _is_locked(file: TextIO) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def self_test(session: Session, nvtx: Any, options: list[str], *, start_s: float) -> str:
    """Return why nsys sees no ranges; empty: it sees them. Raise CaptureError if it cannot tell."""
    own = session.program.folder or None  # removed with the session, even if the program is killed
    with tempfile.TemporaryDirectory(prefix="rlprof-nsys-test-", dir=own) as name:
        folder = Path(name)
        session.start(folder, options, None, within_s=start_s)
        nvtx.push_range(TEXT, domain=DOMAIN)
        nvtx.pop_range(domain=DOMAIN)
        found = session.stop(folder, within_s=_EXPORT_S)
        if found.file == RAW:
            imported(session.program, folder / RAW, folder / REPORT)
        elif not found.file:
            raise CaptureError(found.why)
        if _has_range(session, folder):
            return ""
    version = _version()
    return (
        f"no ranges of phases: nsys does not see those of nvtx {version}; nsys 2023.4 sees nvtx "
        "0.2.11, newer nsys sees newer nvtx; or this process was forked and never called exec"
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
        except sqlite3.OperationalError:  # no such table: nsys saw no range
            return False
    return bool(count)


def _version() -> str:
    from importlib import metadata

    try:
        return metadata.version("nvtx")
    except metadata.PackageNotFoundError:
        return "of this environment"
