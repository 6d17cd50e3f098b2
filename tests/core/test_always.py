"""`tool: none`: spans and counters of every process, and nothing is recorded."""

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
    """One word in the environment is enough; no process needs anything from its launcher."""
    prof = record(None, role=given)

    assert rlprof.launch(role=role) == rlprof.types.Launch()
    run = rlprof.read(prof.run_dir)
    assert [(span.name, span.target.role) for span in run.spans()] == [
        ("rollout", role), ("step 1", role),
    ]  # fmt: skip
    assert (run.captures, run.problems, run.missing) == ((), (), ())
    assert [one for one in caplog.records if one.levelno >= logging.WARNING] == []


def test_commands_say_that_nothing_is_recorded(capsys):
    """`check` and `plan` take the word in the place of a file."""
    assert [main([command, "always"]) for command in ("check", "plan")] == [0, 0]

    assert capsys.readouterr().out.endswith(
        "  tool: none; only spans and counters are written\n"
        "always: only spans and counters are written (tool: none)\n"
    )
