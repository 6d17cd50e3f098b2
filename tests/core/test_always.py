"""`tool: none`: spans and counters of every process, and nothing is recorded."""

from __future__ import annotations

import logging

import pytest

import rlprof
from rlprof_cli import main
from tests.core.steps import record


@pytest.fixture(name="always")
def _always(monkeypatch, tmp_path):
    """Work in an empty folder whose environment says `always`."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RLPROF_CONFIG", "always")


@pytest.mark.parametrize(("given", "role"), [("actor", "actor"), (None, "driver")])
@pytest.mark.usefixtures("always")
def test_always_keeps_the_spans_of_any_role(given, role, caplog):
    """One word in the environment is enough, and nothing is complained of."""
    prof = record(None, role=given)

    run = rlprof.read(prof.run_dir)
    assert [(span.name, span.target.role) for span in run.spans()] == [
        ("rollout", role), ("step 1", role),
    ]  # fmt: skip
    assert (run.captures, run.problems, run.missing) == ((), (), ())
    assert [one for one in caplog.records if one.levelno >= logging.WARNING] == []


@pytest.mark.usefixtures("always")
def test_always_launches_as_it_is():
    """Processes need nothing from birth."""
    assert rlprof.launch(role="rollout") == rlprof.types.Launch()


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["check"], "  tool: none; only spans and counters are written\n"),
        (["plan"], "always: only spans and counters are written (tool: none)\n"),
    ],
)  # fmt: skip
def test_commands_say_that_nothing_is_recorded(argv, said, capsys):
    """`check` and `plan` take the word in the place of a file."""
    assert main([*argv, "always"]) == 0

    assert capsys.readouterr().out.endswith(said)
