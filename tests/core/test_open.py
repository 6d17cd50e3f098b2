"""Arguments and environment variables of `rlprof.open`, and the errors it raises."""

import logging
import os
import pickle
from pathlib import Path

import pytest

import rlprof
from rlprof_cli import main
from tests.cases import cases, refused
from tests.core.steps import record, train


def test_without_a_config_rlprof_is_off(config):
    """Without a config, or if it is disabled, open returns Off with the methods of a session."""
    prof = rlprof.open()

    with prof:
        assert list(prof.steps(range(3))) == [0, 1, 2]
        assert prof.step(1) is None
        assert prof.phase("a") is prof.span("b", {"c": 1})
        with prof.phase("a") as phase:
            phase.note("tokens", 1)
        prof.minibatch()
    assert isinstance(prof, rlprof.Off)
    assert (prof.is_recording, prof.run_dir) == (False, None)
    assert isinstance(rlprof.open(config(enabled=False)), rlprof.Off)
    session = {name for name in vars(rlprof.Session) if not name.startswith("_")}
    internal = {"add", "forget", "close_away", "count", "enter", "leave", "open_away", "scribe",
                "end_steps"}  # fmt: skip
    of_listeners = {"ask", "log", "target", "tracks", "write", "add_span", "watch_spans"}
    of_fleets = {"open_window", "go_to", "close_window", "lead", "run", "here", "name", "manifest",
                 "warn", "attempt", "add_figures"}  # fmt: skip
    internal |= of_listeners | of_fleets

    assert session - internal <= {name for name in dir(rlprof.Off) if not name.startswith("_")}


@pytest.mark.slow
def test_a_session_prints_its_run_folder_and_what_it_recorded(config, monkeypatch, capsys):
    """A session prints its run folder on stderr when it opens, and its windows when it closes."""
    monkeypatch.delenv("RLPROF_QUIET")
    with rlprof.open(config(steps=[1, 2], options={"raises_in": "stop"})) as prof:
        monkeypatch.chdir(prof.run_dir.parent)
        opened = capsys.readouterr().err
        train(prof, [1], "update")

    assert opened == f"rlprof: records into {prof.run_dir}\n"
    look = f"look at the run with: rlprof ls {prof.run_dir.name}"
    assert capsys.readouterr() == ("", f"rlprof: 1 window opened, 1 with failures; {look}\n")
    with rlprof.open("always", role="actor") as prof:
        shown = prof.run_dir.relative_to(Path.cwd())
    end = f"rlprof: see why steps are slow with: rlprof why {shown}\n"
    assert capsys.readouterr().err == f"rlprof: records spans into {shown}\n{end}"


def test_the_only_role_need_not_be_named(config):
    """The only role of a config need not be named; with several, open refuses to choose."""
    prof = record(config(roles={"critic": {}}), ())

    (process,) = rlprof.read(prof.run_dir).processes
    assert process.target.role == "critic"
    with pytest.raises(rlprof.ConfigError, match="roles actor, critic; say which this process is"):
        rlprof.open(config(roles={"actor": {}, "critic": {}}))


@cases("rank, size", ("RANK", "WORLD_SIZE"), ("SLURM_PROCID", "SLURM_NTASKS"),
       ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"))  # fmt: skip
def test_rank_and_world_size_come_from_the_launcher(config, monkeypatch, rank, size):
    """Rank and world size come from the variables of torchrun, Slurm or Open MPI."""
    monkeypatch.setenv(rank, "0")
    monkeypatch.setenv(size, "4")

    prof = record(config(), (), coordinates={"tp": 0})

    (process,) = rlprof.read(prof.run_dir).processes
    assert (str(process.target), process.target.coordinates) == ("actor 0/4", {"tp": 0})


# failures.md: config-error
@cases(
    "env, message",
    ({"RANK": "abc"}, "environment variable RANK: expected a whole number, got 'abc'"),
    ({"RANK": "4", "WORLD_SIZE": "4"}, "rank 4 does not exist in a world of 4"),
)
def test_ranks_that_do_not_exist_are_refused(config, monkeypatch, env, message):
    """Open raises a ConfigError for a rank that is not a number or not in the world."""
    for name, value in env.items():
        monkeypatch.setenv(name, value)

    assert message in refused(rlprof.ConfigError, rlprof.open, config())


def test_a_config_may_choose_ranks_of_a_larger_job(config, caplog):
    """Ranks of the config that do not exist are logged and missing; the others are recorded."""
    prof = record(config(roles={"actor": {"ranks": [0, 7]}}), (1,), world_size=2)

    run = rlprof.read(prof.run_dir)
    assert [capture.state for capture in run.captures] == ["whole"]
    assert [target.rank for target in run.missing] == [7]
    assert "roles.actor.ranks: rank 7 does not exist in a world of 2" in caplog.text


@cases("key, where", ("run_dir", ""), ("scratch_dir", f"/rlprof-{os.getuid()}"))
def test_a_folder_that_cannot_be_made_is_two_lines(config, caplog, tmp_path, key, where):
    """A folder that cannot be made is logged in two lines; the traceback is at level DEBUG."""
    (tmp_path / "file").touch()
    folder = tmp_path / "file" / "folder"

    with caplog.at_level(logging.DEBUG, "rlprof"):
        record(config(**{key: str(folder)}), ())

    told = [(r.levelname, r.message) for r in caplog.records if r.levelno >= logging.WARNING]
    reason = f"{folder}{where}: cannot be made: Not a directory; name another {key}"
    assert told == [
        ("ERROR", "actor 0/1: rlprof stays off in this process"),
        ("WARNING", f"actor 0/1: open: RunError: {reason}; training goes on"),
    ]
    assert [r.levelname for r in caplog.records if r.exc_info] == ["DEBUG"]


def test_a_config_error_has_a_note_with_the_command_that_helps():
    """A ConfigError has a note with the command that helps, also after pickling."""
    with pytest.raises(rlprof.ConfigError) as wrong:
        rlprof.open({"tools": 1})

    copied = pickle.loads(pickle.dumps(wrong.value))
    assert str(copied) == str(wrong.value)
    assert [note.startswith("rlprof check --keys ") for note in copied.__notes__] == [True]


@pytest.mark.parametrize(("given", "role"), [("actor", "actor"), (None, "driver")])
def test_always_records_spans_of_any_role(given, role, *, monkeypatch, tmp_path, caplog, capsys):
    """`always` in place of a config records spans of any role; `check` and `plan` accept it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RLPROF_CONFIG", "always")
    prof = record(None, role=given)

    assert rlprof.launch(role=role) == rlprof.types.Launch()
    run = rlprof.read(prof.run_dir)
    assert [(span.name, span.target.role) for span in run.spans()] == [
        ("rollout", role), ("step 1", role),
    ]  # fmt: skip
    assert (run.captures, run.problems, run.missing) == ((), (), ())
    assert [one for one in caplog.records if one.levelno >= logging.WARNING] == []
    assert [main([command, "always"]) for command in ("check", "plan")] == [0, 0]
    assert capsys.readouterr().out.endswith(
        "  tool: none; only spans and counters are written\n"
        "always: only spans and counters are written (tool: none)\n"
    )
