"""Annotated functions behave as before and become phases or spans in an open session."""

import asyncio
import inspect

import cloudpickle
import pytest

import rlprof
from tests.cases import refused


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
    yield count


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


def test_an_annotated_function_is_called_as_before():
    """An annotated function keeps its signature, name, docstring, kind and call errors."""
    assert str(inspect.signature(plain)) == "(a, /, b, c=3, *rest, d, e=5, **more)"
    assert (plain.__name__, plain.__doc__) == ("plain", "Doc.")
    assert plain(1, 2, 30, 31, d=4, e=50, f=6) == (1, 2, 30, (31,), 4, 50, {"f": 6})
    assert "missing 1 required keyword-only argument: 'd'" in refused(TypeError, plain, 1, 2)
    assert inspect.iscoroutinefunction(coroutine)
    assert inspect.isasyncgenfunction(items)
    assert inspect.isgeneratorfunction(numbers)
    assert not inspect.iscoroutinefunction(plain)


@pytest.mark.slow
@pytest.mark.parametrize("is_on", [False, True], ids=["off", "on"])
def test_results_are_the_same_on_and_off(config, is_on):
    """Annotated functions and generators of all kinds return the same on and off."""
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


@pytest.mark.parametrize("is_on", [False, True], ids=["off", "on"])
def test_an_annotated_async_generator_gets_asend_athrow_and_aclose(config, is_on):
    """An annotated async generator receives asend, athrow and aclose."""
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

    assert (got, events) == ([None, "a", "caught b"], ["closed"])


@pytest.mark.slow
def test_a_function_pickled_by_value_finds_the_session(config):
    """An annotated function that was pickled by value carries no session and uses the open one."""

    def local(x):
        return x

    with rlprof.open(config()) as prof:
        prof.step(1)
        data = cloudpickle.dumps(rlprof.annotate("copied")(local))
        assert cloudpickle.loads(data)(3) == 3

    assert b"Session" not in data
    assert spans(prof) == [("phase", "copied")]
