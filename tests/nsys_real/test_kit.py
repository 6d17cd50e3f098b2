"""The plugin test kit, in a process that the launcher has started under the real nsys."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from rlprof_nsys._arguments import LAUNCHER, Asked

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parent.parent.parent


def test_the_tool_passes_the_kit(nsys, tmp_path):
    """All tests of the kit pass, and only the two that do not apply are skipped."""
    done = subprocess.run(
        [
            *LAUNCHER, Asked("kit", str(nsys), ("nvtx", "osrt")).text(),
            sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q",
            f"--basetemp={tmp_path}/kit", "tests/nsys/test_conformance.py",
            "-k", "not that_were_cut",
        ],
        cwd=ROOT, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stdout[-8000:] + done.stderr
    assert int(re.search(r"(\d+) passed", done.stdout)[1]) > 30
    assert set(re.findall(r"SKIPPED \[\d+\] .*?: (.*)", done.stdout)) <= {
        "declares no sample(rounds), the work that estimates its cost",
        "has no hook lighter, which returns cheaper options",
    }
