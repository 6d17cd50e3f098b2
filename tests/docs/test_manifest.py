"""docs/manifest.md: the reader reads its example, and core writes what it lists."""

import json
import re
import threading

import attrs
import pytest

import rlprof
from rlprof import control
from rlprof.control import Request
from rlprof.rundir import as_json
from rlprof.session import _scribe
from rlprof_cli import main
from rlprof_run import _run as values
from tests.core.steps import through
from tests.core.test_on_demand import ask, train
from tests.core.test_salvage import CLOSED, _killed  # noqa: F401 -- a fixture
from tests.docs.pages import PAGES, blocks, rows, section, words
from tests.docs.shell import write
from tests.fakes import engines

PAGE = PAGES["docs/manifest.md"]
SPANS = {word for row in rows(section(PAGE, "Spans")) for word in words(row[0])}
EVENTS = {row[0].strip("`"): set(words(row[1])) for row in rows(section(PAGE, "The manifest"))}


def told(run):
    files = sorted(run.glob("manifest/*.jsonl"))
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


def fields(lines):
    """Return the fields of each event, except those of every line."""
    seen = {}
    for line in lines:
        seen.setdefault(line["event"], set()).update(set(line) - {"event", "mono"})
    return seen


@pytest.fixture(name="example", scope="module")
def _example(tmp_path_factory):
    """Write the files of the page as a run folder."""
    home = tmp_path_factory.mktemp("example")
    for block in blocks(PAGE, mark="file"):
        write(home, block.said, block.text)
    return home


def test_the_example_is_read_as_the_page_says(example):
    """The example gives the captures, skipped step, answer and problems that the page explains."""
    run = rlprof.read(example)

    states = [(c.window.id, str(c.target), c.state) for c in run.captures]
    assert states == [
        ("2/rollout", "rollout replica 0", "failed"),
        ("2/update_actor", "actor 0/1", "whole"),
        ("5/update_actor", "actor 0/1", "whole"),
    ]
    assert [(one.step, one.target.role) for one in run.skipped] == [(4, "actor")]
    assert [(one.id, one.steps) for one in run.answers] == [("20261121-140305-77aa", (5,))]
    assert [str(target) for target in run.missing] == ["critic 0/1"]
    assert "12 spans could not be written" in " ".join(run.problems)
    assert [process.state for process in run.processes] == ["ended"]


def test_the_example_has_every_event_and_the_fields_of_the_tables(example):
    """The example has every event with listed fields only, and its request is valid."""
    shown = fields(told(example))
    (spans,), (file,) = example.glob("spans/*.jsonl"), (example / "requests").iterdir()
    lines = [json.loads(line) for line in spans.read_text().splitlines()]
    table = {row[0].strip("`"): row[1] for row in rows(section(PAGE, "Requests"))}

    (request,) = control.read(file)

    assert set(shown) == set(EVENTS)
    for event, names in shown.items():
        assert names - {"of"} <= EVENTS[event], event
    assert {key for line in lines for key in line} == SPANS
    assert {"step", "phase", "span"} == {line["kind"] for line in lines}
    assert json.loads(as_json(request.as_data())) == json.loads(file.read_text())
    assert set(table) == {field.name for field in attrs.fields(Request)}
    assert (table["next"], table["at"], table["ranks"]) == ("1", "0", "`[0]`")


def test_every_state_and_every_field_of_a_capture_is_explained():
    """The page has every state of processes, captures and answers and all of capture.json."""
    text = section(PAGE, "States")
    answer = values.Answer.__annotations__["state"]
    (sentence,) = re.findall(r"`capture\.json` holds (.*?): enough", PAGE, re.DOTALL)

    for name in (*values.ProcessState.__args__, *values.CaptureState.__args__):
        assert f"`{name}`" in text
    for name in re.findall(r"'(\w+)'|\"(\w+)\"", answer):
        assert f"`{''.join(name)}`" in text
    documented = set(words(sentence)) - {"engine"}
    assert {field.name for field in attrs.fields(rlprof.Capture)} == documented


WITH_AN_ENGINE = """
config["roles"]["rollout"] = {"engine": "motor", "tool": []}
prof = rlprof.open(config, role="actor")
prof.attach({"name": "engine 0"})
"""


@pytest.fixture(name="live")
def _live(config, monkeypatch):
    """Record a run that writes every event of a live process."""
    engines.register()
    monkeypatch.setattr(_scribe, "_MOST_SPANS", 50)
    roles = {
        "actor": {"phases": ["update"]},
        "rollout": {"engine": "motor", "phases": ["rollout"], "tool": [], "ranks": "all"},
    }
    limits = {"bytes": 100_000}
    with rlprof.open(
        config(tool="costly", roles=roles, limits=limits, steps=[2, 3, 9], spans={"bytes": 1000}),
        role="actor",
    ) as prof:
        prof.attach({"name": "good"})
        prof.attach({}, replica=1)  # one without a name, so that its start fails
        train(prof, [1, 2])
        recorders = prof.tracks[0].instruments._recorders
        recorders["costly"].last_bytes = 10**9  # so that the next one is lighter
        train(prof, [3])
        ask(prof)
        ask(prof, role="rollout")
        train(prof, [4])
        ask(prof, role="rollout", phases=("nothing",))
        train(prof, [5])
        prof.step(9)
        scope = prof.phase("update").__enter__()
        worker = threading.Thread(target=scope.__exit__, args=(None, None, None))
        worker.start()  # ended on another thread
        worker.join()
        prof.minibatch()
        prof.step("ten")
        for _ in range(200):
            through(prof.span("many"))
    return prof.run_dir


@pytest.mark.slow
def test_the_page_lists_exactly_what_core_writes(live, killed):
    """The page lists exactly the events and fields that real runs write."""
    salvaged = killed(WITH_AN_ENGINE + CLOSED)
    assert main(["salvage", str(salvaged)]) == 0
    seen = fields(told(live) + told(salvaged))

    assert set(EVENTS) == set(seen)
    for event, names in seen.items():
        assert EVENTS[event] - {"of"} == names - {"of"}, event
    header = json.loads((live / "run.json").read_text())
    lines = told(live)
    process, opened = (
        next(line for line in lines if line["event"] == event) for event in ("process", "opened")
    )
    (file, *_) = (live / "spans").iterdir()
    spans = [json.loads(line) for line in file.read_text().splitlines()]
    keys = {row[0].strip("`") for row in rows(section(PAGE, "`run.json`"))}
    (block,) = (block.text for block in blocks(PAGE, mark="file") if block.said == "run.json")
    manifest = section(PAGE, "The manifest")

    assert set(header) == keys == set(json.loads(block))
    assert set(header["owner"]) == set(json.loads(block)["owner"])
    for value in (process["target"], process["here"], opened["window"]):
        written = ", ".join(f'"{key}"' for key in value)
        assert f"`{{{written}}}`" in manifest
    assert {key for line in spans for key in line} <= SPANS
