"""Annotated functions stay what they were and become phases or spans while a session is open."""

from __future__ import annotations

import asyncio
import inspect

import cloudpickle
import pytest

import rlprof


@rlprof.annotate("plain")
def plain(a, /, b, c=3, *rest, d, e=5, **more):
    """Doc."""
    return (a, b, c, rest, d, e, more)


@rlprof.annotate
async def coroutine(x):
    await asyncio.sleep(0)
    return x + 1


@rlprof.annotate("items", span=True)
async def items(count):
    got = []
    for number in range(count):
        got.append((yield number))
    assert got is not None


@rlprof.annotate("numbers", span=True)
def numbers(count):
    total = 0
    for number in range(count):
        total += (yield number) or 0
    return total


class Worker:
    @rlprof.annotate("method")
    def method(self, x):
        return (self, x)

    @rlprof.annotate("static")
    @staticmethod
    def static(x):
        return x

    @classmethod
    @rlprof.annotate("of_class")
    def of_class(cls, x):
        return (cls, x)


def spans(prof):
    return [(s.kind, s.name) for s in rlprof.read(prof.run_dir).spans() if s.kind != "step"]


def test_signature_name_and_doc_are_kept():
    """An annotated function looks like the one it was."""
    assert str(inspect.signature(plain)) == "(a, /, b, c=3, *rest, d, e=5, **more)"
    assert (plain.__name__, plain.__doc__) == ("plain", "Doc.")


def test_arguments_arrive_as_given():
    """Every kind of parameter is handed on, defaults included."""
    assert plain(1, 2, d=4) == (1, 2, 3, (), 4, 5, {})
    assert plain(1, 2, 30, 31, d=4, e=50, f=6) == (1, 2, 30, (31,), 4, 50, {"f": 6})


def test_a_wrong_call_is_the_users_own_error():
    """A missing argument raises TypeError as it would without the decorator."""
    with pytest.raises(TypeError, match="missing 1 required keyword-only argument: 'd'"):
        plain(1, 2)


def test_a_coroutine_function_stays_one():
    """Frameworks ask for coroutine functions; the kinds must not change."""
    assert inspect.iscoroutinefunction(coroutine)
    assert inspect.isasyncgenfunction(items)
    assert inspect.isgeneratorfunction(numbers)
    assert not inspect.iscoroutinefunction(plain)


@pytest.mark.slow
@pytest.mark.parametrize("is_on", [False, True], ids=["off", "on"])
def test_results_are_the_same_on_and_off(config, is_on):
    """Functions, methods, coroutines and generators give what they gave, with a session or not."""
    worker = Worker()
    prof = rlprof.open(config() if is_on else None)

    with prof:
        prof.step(1)
        assert plain(1, 2, d=4) == (1, 2, 3, (), 4, 5, {})
        assert worker.method(7) == (worker, 7)
        assert (Worker.static(8), worker.static(8)) == (8, 8)
        assert Worker.of_class(9) == (Worker, 9)
        assert asyncio.run(coroutine(1)) == 2
        assert list(numbers(3)) == [0, 1, 2]

    if is_on:
        names = ["plain", "method", "static", "static", "of_class", "coroutine"]
        assert [*[("phase", n) for n in names], ("span", "numbers")] == spans(prof)


def test_a_coroutine_is_measured_to_its_end(config):
    """A coroutine that waits 50 ms is a span of 50 ms, not of the call that made it."""

    @rlprof.annotate("waiting", span=True)
    async def waiting():
        await asyncio.sleep(0.05)

    with rlprof.open(config()) as prof:
        asyncio.run(waiting())

    (span,) = rlprof.read(prof.run_dir).spans()
    assert span.seconds >= 0.05


@pytest.mark.parametrize("is_on", [False, True], ids=["off", "on"])
def test_an_async_generator_takes_what_is_sent_and_thrown(config, is_on):
    """asend, athrow and aclose reach the generator inside, as without the decorator."""
    events = []

    @rlprof.annotate("echo", span=True)
    async def echo():
        sent = None
        try:
            while True:
                try:
                    sent = yield sent
                except ValueError as exc:
                    sent = f"caught {exc}"
        finally:
            events.append("closed")

    async def main():
        stream = echo()
        got = [await stream.__anext__(), await stream.asend("a")]
        got.append(await stream.athrow(ValueError("b")))
        await stream.aclose()
        return got

    with rlprof.open(config() if is_on else None):
        got = asyncio.run(main())

    assert got == [None, "a", "caught b"]
    assert events == ["closed"]


def test_a_generator_returns_and_takes_values(config):
    """Send and the return value of a generator pass through."""
    with rlprof.open(config()) as prof:
        stream = numbers(2)
        next(stream)
        stream.send(10)
        with pytest.raises(StopIteration) as stop:
            stream.send(5)

    assert stop.value.value == 15
    assert spans(prof) == [("span", "numbers")]


@pytest.mark.slow
def test_exceptions_pass_through(config):
    """What the function raises is what the caller gets, traceback included."""

    @rlprof.annotate("failing")
    def failing():
        raise KeyError("mine")

    with rlprof.open(config()) as prof, pytest.raises(KeyError, match="mine"):
        prof.step(1)
        failing()

    assert spans(prof) == [("phase", "failing")]


@pytest.mark.slow
def test_an_annotated_phase_opens_its_window(config, calls):
    """A decorator is as good as a with."""

    @rlprof.annotate("update_actor")
    def update():
        return 1

    with rlprof.open(config(roles={"actor": {"phases": ["update_actor"]}})) as prof:
        prof.step(4)
        update()

    assert [call[2] for call in calls if call[1] == "start"] == ["4/update_actor"]


def test_parameters_may_be_called_anything():
    """Names of the wrapper's own do not get into the way of the function's."""

    @rlprof.annotate("odd")
    def odd(fn, session, _session, _fn, wrapper, *args, name, **kwargs):
        return (fn, session, _session, _fn, wrapper, args, name, kwargs)

    assert odd(1, 2, 3, 4, 5, 6, name=7, k=8) == (1, 2, 3, 4, 5, (6,), 7, {"k": 8})


@pytest.mark.slow
def test_a_function_pickled_by_value_finds_the_session(config):
    """Ray pickles what a script defines by value; the copy must look where the session is."""

    def local(x):
        return x

    copied = cloudpickle.loads(cloudpickle.dumps(rlprof.annotate("copied")(local)))

    with rlprof.open(config()) as prof:
        prof.step(1)
        assert copied(3) == 3

    assert spans(prof) == [("phase", "copied")]


def test_an_open_session_is_not_pickled_along(config):
    """Pickling an annotated function does not drag the session of this process with it."""

    def local(x):
        return x

    with rlprof.open(config()):
        data = cloudpickle.dumps(rlprof.annotate("copied")(local))

    assert b"Session" not in data


@pytest.mark.slow
def test_builtins_can_be_annotated(config):
    """What has no Python code is handed its arguments as they come."""
    with rlprof.open(config()) as prof:
        prof.step(1)
        assert rlprof.annotate("length")(len)([1, 2]) == 2

    assert spans(prof) == [("phase", "length")]
