"""The report as page, JSON and text: its content, its sources and its size."""

import json
import math
import re
from itertools import combinations
from statistics import median

import attrs
import pytest

import rlprof
from rlprof.testing import ExporterTests
from rlprof_cli import main
from rlprof_report import Report, analyse, notebook
from rlprof_report._page import page
from rlprof_report._page._text import seconds
from rlprof_report._report import report_json
from rlprof_report._terminal import text_of
from rlprof_report.values.step import Overlap
from tests.report.folder import Driven
from tests.report.page.made import made

SECTIONS = [
    "findings", "steps", "helps", "path", "rollout", "ranks", "device", "gantt-of-all", "counters",
    "recording", "definitions",
]  # fmt: skip


def sections(text):
    found = re.finditer(r'<section id="([^"]+)">(.*?)</section>', text, re.DOTALL)
    return {match[1]: match[2] for match in found}


def test_every_section_is_present_linked_and_complete():
    """All sections are present, linked and in order; each figure names its source."""
    text = page(made())
    told = sections(text)
    captions = re.findall(r"<figcaption>(.*?)</figcaption>", text, re.DOTALL)

    assert list(told) == SECTIONS
    assert re.findall(r'<a href="#([a-z-]+)">', text.split("</nav>")[0]) == SECTIONS
    for words in (
        "The last 5 % of trajectories hold step 7 up by 26.6 s.",
        "They write 2.5 times as many tokens.",
        "<dd>26.6\u00a0s (40\u00a0%)",
        "<b>trajectory 7-113</b>",
        "rlprof capture runs/grpo --phase rollout",
    ):
        assert words in told["findings"]
    hatched = [told["steps"].count(f'class="over {one}"') for one in ("recorded", "touched")]
    assert hatched == [2, 2]
    assert "Hatched: warm-up: 1; recorded: 3; touched: 4." in told["steps"]
    assert len(captions) > 15
    assert [
        one for one in captions if not re.search("From (the )?(spans|traces|manifest)", one)
    ] == []
    assert (
        'Figure <a href="#figure-9">9 critical path</a>. From spans. Step 8, 83.4\u00a0s; the '
        "parts tile it exactly."
    ) in captions


def test_a_run_without_a_step_is_its_verdict():
    """The page of a run without steps is its verdict, without empty sections."""
    nothing = attrs.evolve(made(steps=0), verdict="No step has begun yet.")

    assert "<h1>No step has begun yet.</h1>" in page(nothing)
    assert {"steps", "helps", "path", "rollout"} & set(sections(page(nothing))) == set()


def test_three_phases_at_once_are_a_bar_as_tall_as_the_step():
    """Phases that all overlap are drawn as one bar as tall as their step."""
    one = made(steps=1).steps[0]
    three = one.phases[:3]
    phases = tuple(attrs.evolve(phase, seconds=10.0) for phase in three)
    pairs = tuple(Overlap(a.name, b.name, 10.0) for a, b in combinations(three, 2))
    step = attrs.evolve(one, seconds=10.0, phases=phases, unaccounted_s=0.0, overlaps=pairs)
    told = sections(page(attrs.evolve(made(steps=1), steps=(step,))))["steps"]

    assert "<title>step 1: 10.0\u00a0s ·" in told
    assert "two phases at once 10.0\u00a0s" in told


def test_steps_without_a_rollout_analysis_are_in_no_mean():
    """Steps without a rollout analysis are left out of means, not counted as 0."""
    whole = made()
    looked = {7, 8, 12}
    steps = tuple(
        step if step.step in looked else attrs.evolve(step, rollout=None, bubbles=(), helps=())
        for step in whole.steps
    )
    told = sections(page(attrs.evolve(whole, steps=steps)))

    usual = median(step.helps[0].seconds for step in steps if step.step in looked)
    assert f">{seconds(900.0)}</td></tr>" in told["steps"]
    assert f">{seconds(usual)}</td></tr>" in told["helps"]


@pytest.mark.slow
def test_many_steps_are_bars_of_several():
    """Above 400 steps, each bar is the mean of several steps, and the caption gives the number."""
    told = sections(page(made(steps=1000, ranks=1)))["steps"]

    assert told.count('class="hit"') == 334
    assert "All 1,000 steps; each bar is the mean of 3 steps, with a line at the slowest" in told


def written(path):
    """Write a run of seven steps with two phases and a counter."""
    run = Driven(path)
    for step in range(1, 8):
        run.now = step * 10.0
        run.counters(run.driver, run.now, rss_bytes=step * 1e9)
        run.step(step, {"rollout": 6, "update": 3})
    return run.written()


def test_a_notebook_shows_a_step_without_script_or_ids(tmp_path):
    """A run in a notebook is one picture and its verdict, without script, style or ids."""
    run = written(tmp_path / "run")

    shown = rlprof.read(run)._repr_html_()

    assert shown == notebook(rlprof.read(run))
    assert shown.count("<svg") == 1
    assert "rollout" in shown
    assert re.findall(r"<script|<style| id=| class=|url\(", shown) == []
    assert analyse(rlprof.read(run)).verdict in shown


@pytest.mark.slow
class TestReport(ExporterTests):
    plugin = Report


def test_json_is_every_field_of_the_values():
    """The JSON has every field of the analysis under its name, and null for NaN."""
    analysis = attrs.evolve(made(), cost_s=math.nan)
    told = json.loads(report_json(analysis), parse_constant=pytest.fail)

    assert (told["schema"], told["cost_s"]) == (1, None)
    assert list(told)[1:] == [field.name for field in attrs.fields(type(analysis))]
    assert told["steps"][6]["rollout"]["replicas"][0]["running"] == 0.55
    assert told["steps"][6]["seconds"] == round(analysis.steps[6].seconds, 6)
    assert told["device"]["roles"][0]["temporal"]["compute_s"] == 6.0


def test_export_writes_page_json_and_text_of_one_analysis(tmp_path, capsys):
    """Export writes page, JSON and text of the same analysis, with the run's counters."""
    run = written(tmp_path / "run")

    assert main(["export", str(run), "--to", "report"]) == 0

    out = run / "exports"
    names = ["report.html", "report.json", "report.txt"]
    assert sorted(file.name for file in out.iterdir()) == names
    analysis = analyse(rlprof.read(run))
    told = json.loads((out / "report.json").read_text())
    assert told["verdict"] == analysis.verdict
    assert told["clocks"] == "All processes ran on one host and share its clock."
    assert analysis.verdict in (out / "report.html").read_text()
    assert (out / "report.txt").read_text() == text_of(analysis) + "\n"
    assert told["counters"][0]["name"] == "rss_bytes"
    assert told["counters"][0]["values"] == [step * 1e9 for step in range(1, 8)]
    assert "report.html" in capsys.readouterr().out
