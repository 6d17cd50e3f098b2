"""Attached rollout engines are recorded in the windows of their role."""

import threading
import time

import pytest

import rlprof
from rlprof.errors import ConfigError
from rlprof_cli import main
from rlprof_live import control
from tests.cases import refused
from tests.core.test_on_demand import ask, train
from tests.fakes import engines
from tests.waiting import wait_until


@pytest.fixture(name="given")
def _given(config):
    """Return a function that makes a config with an actor and a rollout engine."""
    engines.register()
    engines.calls.clear()

    def make(engine="motor", options=None, rollout=None, **changes):
        rollout = {"engine": engine, "phases": ["rollout"], "tool": []} | (rollout or {})
        roles = {"actor": {"phases": ["update"]}, "rollout": rollout}
        given = {"roles": roles, "engines": {engine: options or {}}, "steps": [1]}
        return config(**given | changes)

    return make


def found(prof):
    return [
        (c.window.id, str(c.target), c.tool, c.state) for c in rlprof.read(prof.run_dir).captures
    ]


@pytest.mark.slow
def test_engines_are_recorded_in_the_windows_of_their_role(given):
    """Each engine that holds a chosen rank is recorded with its own target and folder."""
    with rlprof.open(given(rollout={"ranks": [0, 3]}), role="actor") as prof:
        for replica in range(3):
            held = [2 * replica, 2 * replica + 1]
            prof.attach({"name": f"e{replica}"}, replica=replica, ranks=held)
        train(prof)

    run = rlprof.read(prof.run_dir)
    assert found(prof) == [
        ("1/rollout", "rollout replica 0", "motor", "whole"),
        ("1/rollout", "rollout replica 1", "motor", "whole"),
        ("1/update", "actor 0/1", "fake", "whole"),
    ]
    (artifact,) = run.captures[0].artifacts
    assert artifact.path.startswith("step_000001/rollout/rollout_replica_0/motor/rollout_replica0_")
    assert (run.path / artifact.path).read_text() == "e0 1/rollout"


def test_launch_of_an_unrecorded_rank_is_empty(given):
    """`rlprof.launch` is empty for an unrecorded rank, an off config and without a config."""
    nothing = rlprof.Launch()

    assert nothing == rlprof.launch(given(), role="rollout", rank=3)
    assert nothing == rlprof.launch(given(enabled=False), role="rollout")
    assert nothing == rlprof.launch(role="rollout")


@pytest.mark.slow
def test_a_role_that_is_not_in_the_config_is_logged(given, caplog):
    """Launch, open and attach each log a role that the config lacks once, with a suggestion."""
    there = "role 'rolout' is not in the config (there: actor, rollout)"
    message = f"{there}: not recorded; did you mean 'rollout'?"

    launch = rlprof.launch(given(), role="rolout")
    for rank in range(2):
        rlprof.open(given(), role="rolout", rank=rank, world_size=2).close()
    with rlprof.open(given(), role="actor") as prof:
        prof.attach({"name": "e"}, role="rolout")
        train(prof)

    assert rlprof.Launch() == launch
    assert [entry[1] for entry in found(prof)] == ["actor 0/1"]
    said = [record.getMessage() for record in caplog.records]
    spans = f"{there}, so it writes spans only; did you mean 'rollout'?"
    assert [message, spans, message] == [line for line in said if "config (there" in line]


def test_an_engine_that_cannot_be_attached_is_refused(given):
    """Attach raises all faults of the engine's options, or that the role names no engine."""
    with rlprof.open(given(options={"sped": 1, "gear": 3}), role="actor") as prof:
        with pytest.raises(ConfigError) as raised:
            prof.attach({"name": "e"})
        assert "name one" in refused(ConfigError, prof.attach, {"name": "e"}, role="actor")

    assert raised.value.faults == (
        "config: engines.motor.sped: unknown key; did you mean 'speed'?",
        "config: engines.motor.gear: expected text, got 3",
    )


@pytest.mark.parametrize("ranks", [[], ["0"], "all"])
def test_the_ranks_of_an_engine_are_checked(given, ranks):
    """Attach and launch refuse an empty or invalid list of ranks in the same words."""
    with rlprof.open(given(), role="actor") as prof:
        attached = refused(ConfigError, prof.attach, {"name": "e"}, ranks=ranks)
    launched = refused(ConfigError, rlprof.launch, given(), role="rollout", ranks=ranks)

    what = f"ranks: expected the global ranks it holds, e.g. [0, 1], got {ranks!r}"
    assert (attached, launched) == (f"attach: {what}", f"launch: {what}")


@pytest.mark.slow
def test_a_role_of_an_engine_is_recorded_by_it_or_by_a_named_tool(given):
    """A process without its engine refuses a request; with a tool named, the process records it."""
    with rlprof.open(given(steps="none"), role="rollout") as prof:
        before = ask(prof, role="rollout")
        prof.attach({"name": "e"})
        ask(prof, role="rollout", tool=("fake",))
        train(prof)

    answers = {(str(one.target), one.state): one.error for one in rlprof.read(prof.run_dir).answers}
    assert "recorded by its engine, which is not attached to this process" in before.error
    assert answers == {
        ("rollout 0/1", "refused"): before.error,
        ("rollout 0/1", "served"): "",
        ("rollout replica 0", "refused"): "rollout is recorded by its engine; leave --tool out",
    }
    assert found(prof) == [("0/rollout", "rollout 0/1", "fake", "whole")]


@pytest.mark.slow
def test_capture_waits_only_for_targets_that_answer(given, capsys):
    """`rlprof capture` does not wait for a process that leaves the answer to its engine."""
    codes = []
    with rlprof.open(given(steps="none"), role="rollout") as prof:
        prof.attach({"name": "e"})
        prof.scribe.flush()
        argv = ["capture", str(prof.run_dir), "--role", "rollout", "--timeout", "60"]
        asking = threading.Thread(target=lambda: codes.append(main(argv)))
        asking.start()
        for _ in prof.steps(range(100_000)):
            with prof.phase("rollout"):
                time.sleep(0.01)
            if not asking.is_alive():
                break
        asking.join()

    assert codes == [0], capsys.readouterr()


@pytest.mark.slow
def test_one_request_may_name_a_trainer_and_its_engine(given, capsys):
    """One request records a trainer and its engine; an option goes to the role that has it."""
    with rlprof.open(given(steps="none"), role="actor") as prof:
        prof.attach({"name": "e"})
        wait_until(lambda: rlprof.read(prof.run_dir).attached)
        words = ["capture", str(prof.run_dir), "--role", "actor", "--role", "rollout"]
        code = main([*words, "--no-wait", "--at", "4", "--set", "fake.level=7"])
        wait_until(lambda: len(rlprof.read(prof.run_dir).answers) == 2)
        train(prof, [4])

    run = rlprof.read(prof.run_dir)
    assert (code, ": step 4 of actor, rollout\n" in capsys.readouterr().out) == (0, True)
    assert [(str(c.target), c.window.start_step, dict(c.asked)) for c in run.captures] == [
        ("rollout replica 0", 4, {}), ("actor 0/1", 4, {"level": 7}),
    ]  # fmt: skip
    assert {c.request for c in run.captures} == {one.id for one in run.answers}


def test_a_request_may_name_options_of_the_tools_inside_an_engine(given, monkeypatch, capsys):
    """A request may set options of the tools inside an engine, but not name other tools."""
    rlprof.register("engine", "hive", engines.Hive)
    asked = []
    monkeypatch.setattr(control, "write", lambda _, request: asked.append(request))
    config = given("hive", rollout={"engine": "hive", "phases": ["rollout"], "tool": ["fake"]})

    with rlprof.open(config, role="actor") as prof:
        prof.attach([])
        wait_until(lambda: rlprof.read(prof.run_dir).attached)
        words = ["capture", str(prof.run_dir), "--role", "rollout", "--no-wait"]
        wanted = ("--tool other", "--set lvl=7", "--set level=7")  # one of the two has `level`
        codes = [main([*words, *one.split()]) for one in wanted]

    told = capsys.readouterr().err
    assert codes == [1, 1, 0]
    assert "drop --tool, change options by --set TOOL.KEY=VALUE" in told
    assert "name the tool or engine: NAME.lvl= (tools and engines: fake, hive)\n" in told
    assert [one.options for one in asked] == [{"fake": {"level": 7}}]
