"""docs/writing-a-plugin.md and docs/hooks.md: what they name is what there is.

That their code runs, and that what they quote stands there, is tested for every page in tests/docs.
"""

from __future__ import annotations

import inspect
import json
import pydoc
import re
import subprocess
import sys
from pathlib import Path

import attrs
import pytest

from rlprof import hookspecs
from rlprof.config import Limits
from rlprof.testing import EngineTests, ToolTests
from rlprof.types import Recording
from rlprof_cli import calibrate_process, contract
from rlprof_run import CaptureResult, Process, Run, Span

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs/writing-a-plugin.md").read_text()
HOOKS = (ROOT / "docs/hooks.md").read_text()
QUOTED = re.findall(r"<!-- quoted: (.*?) -->", GUIDE)
DECLARED = re.findall(r"^`(\w+)`$", inspect.getdoc(hookspecs.Recorder), re.MULTILINE)


def test_the_guide_quotes_both_examples():
    """The tool's class and the engine's adapter are in the guide."""
    assert {
        "examples/third_party_tool/src/rlprof_stacks/_tool.py",
        "examples/third_party_tool/tests/test_conformance.py",
        "examples/third_party_engine/src/rlprof_mini/__init__.py",
        "examples/third_party_engine/tests/test_conformance.py",
    } <= set(QUOTED)


@pytest.mark.parametrize("kind", ["tool", "engine", "exporter"])
def test_every_hook_and_its_arguments_are_drawn(kind):
    """The section of each kind in docs/hooks.md draws its hooks with all that they are given."""
    (section,) = re.findall(rf"\n## An? {kind}\n(.*?)(?=\n## )", HOOKS, re.DOTALL)
    (picture,) = re.findall(r"```\n(.*?)```", section, re.DOTALL)

    for hook, arguments in contract.arguments(kind).items():
        assert f"{hook}(" in picture, f"{kind}: {hook} is not drawn"
        for argument in arguments:
            assert re.search(rf"\b{argument}\b", picture), f"{kind}: {hook} without {argument}"
        for drawn in re.findall(rf"\b{hook}\(([^)\n…]*)\)", picture):  # where it fits on a line
            assert arguments == [argument.partition("=")[0] for argument in drawn.split(", ")]


@pytest.mark.parametrize("name", DECLARED)
def test_every_declared_attribute_is_documented(name):
    """What a class may declare has a row in the guide."""
    assert f"| `{name}` |" in GUIDE


def test_the_contract_declares_what_it_did():
    """The attributes are found in the contract, so that the test above tests something."""
    assert {"Options", "runs_on", "claims", "sample", "drives"} <= set(DECLARED)


@pytest.mark.parametrize(
    "name", [field.name for field in attrs.fields(Limits) if field.name.endswith("_s")]
)
def test_every_deadline_is_drawn_as_it_is(name):
    """docs/hooks.md names each limit, and its default in seconds."""
    seconds = f"{getattr(Limits(), name):g} s"

    assert name in HOOKS
    assert seconds in HOOKS


@pytest.mark.parametrize("name", [name for name in vars(Recording) if not name.startswith("_")])
def test_every_member_of_a_recording_is_documented(name):
    """The guide says what each member that core looks for means."""
    assert re.search(rf"^\| `{name}(\(.*?\))?` \|", GUIDE, re.MULTILINE)


@pytest.mark.parametrize("name", DECLARED)
def test_every_declared_attribute_is_shown_by_help(name):
    """`help(rlprof.hookspecs.Recorder)` explains each, beside the hooks."""
    shown = pydoc.plain(pydoc.render_doc(hookspecs.Recorder))

    assert f"`{name}`\n" in shown


def test_the_sizes_of_a_sample_are_those_that_are_told():
    """How long core measures, and for how long at most, is what both guides say."""
    words = inspect.getdoc(hookspecs.Recorder)

    assert f"{calibrate_process._SECONDS:g} s of CPU time" in " ".join(words.split())
    assert f"{calibrate_process._SECONDS:g} s of CPU time" in " ".join(GUIDE.split())
    assert f"after {calibrate_process._LONGEST_S} s" in " ".join(GUIDE.split())


@pytest.mark.slow
def test_the_timeline_takes_what_the_guide_says(tmp_path):
    """Events of every kind it names come through with their arguments, on tracks of that name."""
    (listed,) = re.findall(r"of every `ph`: (.*?)\.$", GUIDE, re.MULTILINE | re.DOTALL)
    kinds = re.findall(r"`(\w)`", listed)
    program = tmp_path / "try_it.py"
    program.write_text(EVENTS.format(kinds=kinds))

    done = subprocess.run(
        [sys.executable, program], cwd=tmp_path, capture_output=True, text=True, check=True
    )

    events = json.loads(done.stdout.splitlines()[-1])
    ours = [event for event in events if "mine" in event.get("args", {})]
    assert {"X", "C", "i"} <= set(kinds)
    assert kinds == [event["ph"] for event in ours]
    names = {event["args"].get("name") for event in events if event["ph"] == "M"}
    assert {"actor 0/1 · mine · a process", "a thread"} <= names


EVENTS = """
import gzip, json, time
import attrs
import rlprof
from rlprof_cli import main

class Mine:
    @rlprof.hookimpl
    def start(self, folder):
        (folder / "raw").write_text(str(time.time_ns()))

    @rlprof.hookimpl
    def export(self, capture, folder, out):
        header = {{
            "run": capture.run_id, "target": attrs.asdict(capture.target), "tool": "mine",
            "window": attrs.asdict(capture.window), "error_ns": None,
            "epoch_ns": int((folder / "raw").read_text()),
        }}
        where = {{"pid": "any", "tid": 7}}
        events = [
            {{"ph": "M", "name": "process_name", "args": {{"name": "a process"}}, **where}},
            {{"ph": "M", "name": "thread_name", "args": {{"name": "a thread"}}, **where}},
            *({{"ph": ph, "name": ph, "ts": 1, "id": 1, "args": {{"mine": 3}}, **where}}
              for ph in {kinds}),
        ]
        name = f"{{capture.stem}}.trace.json.gz"
        with gzip.open(out / name, "wt") as file:
            json.dump({{"rlprof": header, "traceEvents": events}}, file)
        return [rlprof.Artifact(name, kind="trace", format="chrome-trace")]

rlprof.register("tool", "mine", Mine)
with rlprof.open({{"tool": "mine", "steps": [1], "roles": {{"actor": {{}}}}}}) as prof:
    prof.step(1)
    with prof.phase("rollout"):
        pass
assert main(["export", str(prof.run_dir)]) == 0
with gzip.open(prof.run_dir / "exports/timeline.json.gz") as file:
    print(json.dumps(json.load(file)["traceEvents"]))
"""


def test_what_the_kit_lets_declare_is_documented():
    """Every attribute an author sets on the test class is in the guide."""
    names = {"plugin", "options", "produces", "works_here", "heavy", "name"}

    for name in names:
        assert hasattr(ToolTests, name) or name == "plugin"
        assert f"| `{name}` |" in GUIDE
    for name in ("engine", "work", "kill", "loop", "cannot_be_killed"):
        assert hasattr(EngineTests, name)
        assert name in GUIDE


def test_what_the_guide_says_of_a_run_is_there():
    """The attributes of a run, a capture, a process and a span that are named exist."""
    (table,) = re.findall(r"\| of the run \| is \|\n(.*?)\n\n", GUIDE, re.DOTALL)
    classes = (Run, CaptureResult, Process, Span)
    known = {name for cls in classes for name in (*dir(cls), *attrs.fields_dict(cls))}

    named = set(re.findall(r"`(\w+)", table))

    assert named <= known
    assert {"captures", "processes", "spans", "problems"} <= named
