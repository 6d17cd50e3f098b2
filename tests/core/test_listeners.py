"""Listeners get the events of a session and cannot disturb it or each other."""

import threading

import pytest

import rlprof
from rlprof import hookimpl, plugins
from rlprof.errors import ConfigError
from tests.core.steps import record, train


def listen(word, **hooks):
    marked = {name: hookimpl(hook) for name, hook in hooks.items()}
    rlprof.register("listener", word, type(word, (), marked))


@pytest.fixture(name="heard")
def _heard():
    """Register the listener `ear`; return the list of the events it gets."""
    heard = []

    def hear(*what):
        heard.append(what)

    listen(
        "ear",
        session_opened=lambda self, session: hear(
            "opened", session.target.role, threading.current_thread().name
        ),
        step_ended=lambda self, step, seconds, windows, phases: hear(
            "step", step, windows, phases, seconds >= 0
        ),
        window_opened=lambda self, window, target, tools: hear(
            "begins", window.id, str(target), tools
        ),
        window_closed=lambda self, window, tools, reason: hear("ends", window.id, tools, reason),
        session_closing=lambda self, session: hear("closing", session.is_recording),
    )
    return heard


@pytest.mark.slow
def test_a_listener_gets_all_events_in_order_on_its_own_thread(config, heard):
    """A listener gets every step and window in order, on a thread of its own."""
    record(config(steps=[1], listeners=["ear"]), range(3))

    assert list(plugins.listeners(["ear"])) == ["live", "ear"]
    assert list(plugins.listeners([])) == []
    assert heard == [
        ("opened", "actor", "rlprof-ear"),
        ("step", 0, 0, ("rollout",), True),
        ("begins", "1/rollout", "actor 0/1", ("fake",)),
        ("ends", "1/rollout", ("fake",), "end"),
        ("step", 1, 1, ("rollout",), True),
        ("step", 2, 0, ("rollout",), True),
        ("closing", False),
    ]


@pytest.mark.slow
def test_a_listener_that_raises_is_called_again(config, caplog):
    """A listener that raises is called again and warned about once; its span watcher is dropped."""
    called, seen = [], []

    class Raises:
        @hookimpl
        def session_opened(self, session):
            session.watch_spans(lambda spans: seen.append(len(spans)) or 1 / 0)

        @hookimpl
        def step_ended(self, step):
            called.append(step)
            raise OSError("no network")

    rlprof.register("listener", "raises", Raises)
    prof = record(config(steps=[1], listeners="raises"), range(3))

    run = rlprof.read(prof.run_dir)
    assert (called, [c.state for c in run.captures]) == ([0, 1, 2], ["whole"])
    assert (len(seen), len(list(run.spans()))) == (1, 6)
    assert any("sees no more spans: ZeroDivisionError" in one for one in run.problems)
    told = [one.levelname for one in caplog.records if "no network" in one.getMessage()]
    assert told[0] == "WARNING"
    assert "WARNING" not in told[1:]


@pytest.mark.slow
def test_a_listener_that_hangs_delays_no_step_and_no_other_listener(config, heard, monkeypatch):
    """A listener that hangs delays no step, listener or close; the run names its hook."""
    monkeypatch.setattr("rlprof.session._listeners._OPEN_S", 0.01)
    monkeypatch.setattr("rlprof.session._listeners._CLOSE_S", 0.1)
    let_go = threading.Event()

    listen("hangs", session_opened=lambda self: let_go.wait())
    with rlprof.open(config(steps=[1], listeners=["hangs", "ear"])) as prof:
        train(prof, range(3))
        prof.scribe.flush()
    let_go.set()

    run = rlprof.read(prof.run_dir)
    assert [c.state for c in run.captures] == ["whole"]
    assert [one[1] for one in heard if one[0] == "step"] == [0, 1, 2]
    (problem,) = [one for one in run.problems if "listener" in one]
    assert "listener hangs has not returned from session_opened" in problem


@pytest.mark.slow
def test_events_that_a_slow_listener_misses_are_counted(config, monkeypatch):
    """The run reports how many events a slow listener missed."""
    monkeypatch.setattr("rlprof.session._listeners._MOST", 2)
    let_go = threading.Event()

    listen("slow", session_opened=lambda self: let_go.wait(30), step_ended=lambda self: None)
    monkeypatch.setattr("rlprof.session._listeners._OPEN_S", 0.01)
    with rlprof.open(config(steps=[1], listeners="slow")) as prof:
        train(prof, range(5))
        let_go.set()

    problems = rlprof.read(prof.run_dir).problems
    assert any(one.endswith("listener slow is slow: it missed 3 events") for one in problems)


def test_a_listener_sees_spans_and_may_add_spans_and_figures(config):
    """A listener sees a step's spans before the step and can add spans and figures."""
    seen = []

    class Sees:
        @hookimpl
        def session_opened(self, session):
            def see(spans):
                seen.extend((kind, name) for kind, name, *_ in spans)
                if spans[-1][0] == "step":
                    session.add_figures(spans[-1][4], {"rlprof/step": spans[-1][4], "mine": 1.0})

            session.watch_spans(see)
            session.add_span("mine", 1, 2, {"own": True})

    rlprof.register("listener", "sees", Sees)
    prof = record(config(tool="none", steps="none", listeners=["sees"]), [3, 4])

    phase = ("phase", "rollout")
    assert seen == [("span", "mine"), phase, ("step", "step 3"), phase, ("step", "step 4")]
    figures = prof.figures()
    assert (figures["rlprof/step"], figures["mine"]) == (4, 1.0)
    (mine,) = [one for one in rlprof.read(prof.run_dir).spans() if one.name == "mine"]
    assert mine.attributes == {"own": True}


def test_without_listeners_a_session_records_and_has_no_figures(config):
    """A session without listeners records windows, but no figures or counters."""
    prof = record(config(steps=[1], listeners="none"), range(3))

    assert [one.state for one in rlprof.read(prof.run_dir).captures] == ["whole"]
    assert len(list(rlprof.read(prof.run_dir).spans())) == 6
    assert prof.figures() == {}
    assert not list(prof.run_dir.glob("counters/*"))
    with pytest.raises(ConfigError, match="listeners: 'fake' is a tool, not a listener"):
        rlprof.open(config(listeners=["live", "fake"]))
