"""One place to start processes from, with the faulty plugins installed as packages are."""

from __future__ import annotations

import pytest

from tests.faults import processes
from tests.faults.harness import Lab

OFFERS = """
[rlprof.tools]
faulty = faulty:Faulty
anywhere = faulty:FaultyAnywhere

[rlprof.engines]
mini = rlprof_mini:Mini
moody = faulty_engine:Moody
"""


@pytest.fixture(scope="session", name="_launcher")
def _start_launcher(tmp_path_factory):
    site = tmp_path_factory.mktemp("site")
    info = site / "faulty-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: faulty\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(OFFERS)
    launcher = processes.Launcher(site)
    yield launcher
    launcher.close()


@pytest.fixture(name="lab")
def _lab(tmp_path, _launcher):
    """Return where a test runs its scripts."""
    yield Lab(tmp_path, _launcher)
    processes.end_all(tmp_path)
