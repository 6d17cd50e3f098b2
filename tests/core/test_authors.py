"""Mistakes of plugin authors are reported in plain words, at run time too."""

import gzip
import json

import attrs
import pytest

import rlprof
from rlprof.session import _exports
from tests.cases import cases
from tests.core import authors
from tests.core.steps import record

TRACE = b'{"rlprof": {}, "traceEvents": []}\n'


def exported(folder, name, raw):
    """Export a capture of tool *name* that left the files *raw*; return the outcome."""
    capture = rlprof.Capture(
        "run", rlprof.Target("actor"), rlprof.Window(1, 2), "odd", "host", 1,
        plugin=f"tests.core.authors:{name}",
    )  # fmt: skip
    (folder / "raw").mkdir()
    for file, data in raw.items():
        (folder / "raw" / file).write_bytes(data)
    (folder / "capture.json").write_text(json.dumps(attrs.asdict(capture)))
    _exports.export(folder, folder / "out", folder)
    return json.loads((folder / "exported.json").read_bytes())


# failures.md: export-returned
@cases(
    "name, says",
    ("Names", "export must return rlprof.Artifact, got 'there.txt'"),
    ("Alone", "export must return a list of rlprof.Artifact, got Artifact(path='there.txt'"),
    ("Unwritten", "export has not written 'nope.txt' into out, and named it all the same"),
    ("Outside", "artifact '../there.txt' lies outside its folder"),
    ("Kind", "artifact 'there.txt': kind must be trace or files, got 'tracee'"),
)
def test_an_invalid_result_of_export_is_an_error(tmp_path, name, says):
    """An export that returns something invalid fails with that mistake; the raw data are kept."""
    outcome = exported(tmp_path, name, {"raw.txt": b"1"})

    assert outcome["error"].startswith(f"PluginError: {says}")
    assert outcome["artifacts"] == []
    assert (tmp_path / "raw/raw.txt").exists()


# failures.md: export-returned
@cases(
    "trace, says",
    (gzip.compress(TRACE[1:]), 'does not begin with the key "rlprof"'),
    (gzip.compress(TRACE)[:-8], "is cut: its gzip has no end"),
    (gzip.compress(TRACE[:-3]), "is cut: its JSON has no end"),
    (gzip.compress(TRACE), ""),
)
def test_a_damaged_trace_is_never_called_whole(tmp_path, trace, says):
    """A damaged trace fails its export; other artifacts and the raw data are kept."""
    outcome = exported(tmp_path, "Copies", {"trace": trace})

    assert [one["path"] for one in outcome["artifacts"]] == (
        ["out/there.txt"] if says else ["out/there.txt", "out/trace.json.gz"]
    )
    assert outcome["error"].startswith(f"artifact 'trace.json.gz' {says}" if says else "")
    assert bool(outcome["error"]) == (tmp_path / "raw").exists() == bool(says)


# failures.md: start-returned
@pytest.mark.slow
def test_an_invalid_result_of_start_makes_a_partial_capture(config, caplog):
    """A capture whose start returns something invalid is exported as partial and notes why."""
    rlprof.register("tool", "fake", authors.StartsFive)
    says = "start must return a rlprof.Recording or nothing, got 5"

    prof = record(config())

    (capture,) = rlprof.read(prof.run_dir).captures
    assert (capture.state, len(capture.artifacts)) == ("partial", 1)
    assert capture.notes == (f"start: PluginError: {says}",)
    assert capture.start_s is not None
    assert f"fake.start: PluginError: {says}" in caplog.text


# failures.md: start-returned
def test_an_invalid_place_from_configure_fails_the_tool(config, shell):
    """A tool whose configure returns an invalid place is not used, and `rlprof ls` reports why."""
    rlprof.register("tool", "fake", authors.RunsAnywhereLater)

    prof = record(config())

    says = "PluginError: runs_on is 'anywhere'; it must be one of thread, process, node"
    assert f"actor 0/1: fake: configure: {says}" in shell("ls", prof.run_dir)[1]
    assert [c.state for c in rlprof.read(prof.run_dir).captures] == ["failed"]
