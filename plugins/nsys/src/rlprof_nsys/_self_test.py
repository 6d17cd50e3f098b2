"""One range in a test window: does this nsys see the ranges of this nvtx?

From 0.2.12 on, nvtx asks the tool whether a domain is enabled. nsys 2023.4 answers no to all, so
there are no ranges and no error.

Do not drop the window: without it, the first one under `nsys profile --start-later` once left no
report on a slow host, although `nsys stop` succeeded.
"""

from __future__ import annotations

import fcntl
import json
import tempfile
from contextlib import closing
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlprof import CaptureError
from rlprof_nsys._arguments import DOMAIN
from rlprof_nsys._host_events import ranges_in
from rlprof_nsys._program import imported, to_sqlite
from rlprof_nsys._report import RAW, REPORT
from rlprof_nsys._sqlite import Tables

if TYPE_CHECKING:
    from rlprof_nsys._session import Session

_STOP_S = 30.0


def tested(session: Session, nvtx: Any, options: list[str], *, start_s: float) -> str:
    """Return the result of `self_test`, which one process runs for all of its session."""
    place = session.program.folder
    if not place:
        return self_test(session, nvtx, options, start_s=start_s)
    with (Path(place) / "self-test").open("a+", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # core does not wait for ever
        file.seek(0)
        text = file.read()
        if not text:
            text = json.dumps(self_test(session, nvtx, options, start_s=start_s))
            file.write(text)
        return str(json.loads(text))


def self_test(session: Session, nvtx: Any, options: list[str], *, start_s: float) -> str:
    """Return why nsys sees no ranges; empty: it sees them. Raise CaptureError if it cannot tell."""
    program = session.program
    own = program.folder or None  # removed with the session, even if the program is killed
    with tempfile.TemporaryDirectory(prefix="rlprof-nsys-test-", dir=own) as name:
        folder = Path(name)
        session.start(folder, options, None, within_s=start_s)
        nvtx.push_range("rlprof self-test", domain=DOMAIN)
        nvtx.pop_range(domain=DOMAIN)
        found = session.stop(folder, within_s=_STOP_S)
        if found.file == RAW:
            imported(program, folder / RAW, folder / REPORT)
        elif not found.file:
            raise CaptureError(found.why)
        to_sqlite(program, folder / REPORT, folder / "report.sqlite")
        with closing(Tables(folder / "report.sqlite")) as tables:
            if ranges_in(tables, DOMAIN):
                return ""
    return (
        f"no ranges of phases: nsys does not see those of nvtx {metadata.version('nvtx')}; nsys "
        "2023.4 sees nvtx 0.2.11, newer nsys sees newer nvtx; or this process was forked and "
        "never called exec"
    )
