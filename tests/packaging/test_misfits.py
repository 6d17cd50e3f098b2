"""A plugin made for another core: whoever meets it is told which, and what to do."""

from __future__ import annotations

from textwrap import dedent

import pytest

from tests.packaging.conftest import DESK

pytestmark = pytest.mark.slow

METADATA = """\
Metadata-Version: 2.1
Name: rlprof-late
Version: 0.9.3
Requires-Dist: rlprof-core>=0.9
"""
OFFERS = """
[rlprof.tools]
late = rlprof_late:Late
[rlprof.exporters]
late_report = rlprof_late:LateReport
"""
BROKEN = """
    from rlprof import hookimpl
    from rlprof.marvels import Marvel

    class Late(Marvel):
        @hookimpl
        def start(self, folder):
            return None
"""
STRANGE = """
    from rlprof import hookimpl

    class Late:
        "Record what only a later core knows how to ask for."

        @hookimpl
        def start(self, folder, marvel):
            return None

    class LateReport:
        @hookimpl
        def render(self, run, out, marvel):
            return None
"""
WHOSE, HERE = "rlprof-late 0.9.3", "rlprof 0.1.0"
ADVICE = "install a version that fits"


@pytest.fixture(name="late")
def _late(built, environment):
    """Return a function that installs the plugin, with the module given, beside core."""

    def make(module: str):
        made = environment(*(built[name].wheel for name in DESK))
        (made.site / "rlprof_late.py").write_text(dedent(module))
        info = made.site / "rlprof_late-0.9.3.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(METADATA)
        (info / "entry_points.txt").write_text(OFFERS)
        file = made.path / "profile.yaml"
        file.write_text(f"run_dir: {made.path}/runs\ntool: late\nroles: {{actor: {{}}}}\n")
        return made

    return make


def assert_explained(said: str, kind: str = "tool 'late'") -> None:
    """Assert that *said* names the plugin, its version, that of rlprof, and what to do."""
    (line,) = {line.strip() for line in said.splitlines() if kind in line and WHOSE in line}
    assert HERE in line
    assert line.endswith(ADVICE)


@pytest.mark.parametrize("module", [BROKEN, STRANGE], ids=["does not load", "takes what is not"])
def test_a_plugin_of_another_core_is_explained_everywhere(late, module):
    """`rlprof plugins`, `rlprof check` and `rlprof.open` say the same of it, and nothing breaks."""
    made = late(module)
    file = str(made.path / "profile.yaml")

    listed = made.rlprof("plugins", code=1)
    checked = made.rlprof("check", file, code=1)
    opened = made.run("-c", f"import rlprof; rlprof.open({file!r})", code=1)

    for said in (listed, checked, opened):
        assert_explained(said)
    if module is STRANGE:  # the other loads no exporter either
        exported = made.rlprof("export", "nowhere", "--to", "late_report", code=1)
        assert_explained(exported, "exporter 'late_report'")
    assert "NO" in listed
    assert "Traceback" not in listed + checked
    assert f"  {file}:2: tool: " in opened
