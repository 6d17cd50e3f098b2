"""`rlprof export RUN --to report`: the page, the same values as JSON, and the same as text."""

from __future__ import annotations

import json
import math

import attrs
import pytest

import rlprof
from rlprof.testing import ExporterTests
from rlprof_cli import main
from rlprof_report import Report, analyse
from rlprof_report._report import report_json
from rlprof_report._terminal import text_of
from tests.report.page.made import made
from tests.report.written_runs import WrittenRun


@pytest.mark.slow
class TestReport(ExporterTests):
    plugin = Report


def refused(constant):
    raise AssertionError(f"{constant} is no JSON")


def test_json_is_every_field_of_the_values():
    """Each field is a key under the same name, with the numbers of the page; none is NaN."""
    analysis = attrs.evolve(made(), cost_s=math.nan)
    told = json.loads(report_json(analysis), parse_constant=refused)

    assert (told["schema"], told["cost_s"]) == (1, None)
    assert list(told)[1:] == [field.name for field in attrs.fields(type(analysis))]
    assert told["steps"][6]["rollout"]["replicas"][0]["running"] == 0.55
    assert told["steps"][6]["seconds"] == round(analysis.steps[6].seconds, 6)
    assert told["device"]["roles"][0]["temporal"]["compute_s"] == 6.0


def test_export_writes_three_printers_of_the_same_values(tmp_path, capsys):
    """Page, JSON and text of one analysis, with the counters that the run has."""
    run = WrittenRun(tmp_path / "run")
    for step in range(1, 8):
        start = step * 10_000_000_000
        run.span("phase", "rollout", start, start + 6_000_000_000, step)
        run.span("step", f"step {step}", start, start + 8_000_000_000, step)
        run.now = start
        run.counters(rss_bytes=step * 1e9)

    assert main(["export", str(run.path), "--to", "report"]) == 0

    out = run.path / "exports"
    assert sorted(file.name for file in out.iterdir()) == [
        "report.html",
        "report.json",
        "report.txt",
    ]
    analysis = analyse(rlprof.read(run.path))
    told = json.loads((out / "report.json").read_text())
    assert told["verdict"] == analysis.verdict
    assert told["clocks"] == "All processes ran on one host and share its clock."
    assert analysis.verdict in (out / "report.html").read_text()
    assert (out / "report.txt").read_text() == text_of(analysis) + "\n"
    assert told["counters"][0]["name"] == "rss_bytes"
    assert told["counters"][0]["values"] == [step * 1e9 for step in range(1, 8)]
    assert "report.html" in capsys.readouterr().out
