from __future__ import annotations

import re
import sqlite3
import subprocess

from tests.nsys_real.drive import launched

RANGES = """
import sys
import nvtx
print("ready", flush=True)
for line in sys.stdin:
    for _ in range(int(line)):
        with nvtx.annotate("one", domain="rlprof"):
            pass
    print("done", flush=True)
"""


def test_it_is_the_release_of_debian(nsys):
    """The program is the real one, of the release that is pinned."""
    told = subprocess.run([nsys, "--version"], capture_output=True, text=True, check=True).stdout
    assert re.search(r"version (\S+)-", told)[1] == "2023.4.4.54"


def test_each_window_leaves_a_report_with_its_ranges(nsys, tmp_path):
    """Each window of a program that goes on leaves a report, with the ranges made in it alone."""
    script = tmp_path / "ranges.py"
    script.write_text(RANGES)
    with launched(nsys, script, tmp_path) as program:
        for window, ranges in enumerate((5, 7)):
            program.tell("100")
            program.start(tmp_path / f"window{window}")
            program.tell(str(ranges))
            program.stop()
    found = []
    for window in range(2):
        base = tmp_path / f"window{window}"
        argv = [nsys, "export", "-t", "sqlite", "-o", f"{base}.sqlite", f"{base}.nsys-rep"]
        subprocess.run(argv, capture_output=True, check=True)
        with sqlite3.connect(f"{base}.sqlite") as tables:
            ((count,),) = tables.execute("select count(*) from NVTX_EVENTS where eventType = 59")
        tables.close()
        found.append(count)
    assert found == [5, 7]
