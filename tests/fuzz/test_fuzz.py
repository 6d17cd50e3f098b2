"""The fuzzers work, and what they have found stays mended."""

from __future__ import annotations

import json
from itertools import count
from types import SimpleNamespace

import pytest

from tests.fuzz import _loop
from tests.fuzz._loop import Parser, fails, found, fuzz, shrink
from tests.fuzz.parsers import NAMES, parser_named

UNMENDED: dict[str, str] = {}
"""Inputs in `found/` that still break something, and what."""


def replay(name: str, file: str, data: bytes):
    reason = UNMENDED.get(file)
    marks = [pytest.mark.xfail(strict=True, reason=reason)] if reason else []
    return pytest.param(name, data, id=file, marks=marks)


@pytest.fixture(name="folder")
def _folder(tmp_path, caplog):
    """A scratch folder; what is logged of broken inputs is no news."""
    caplog.set_level("CRITICAL", "rlprof")
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_fuzzer_finds_nothing_in_a_second(name, folder):
    """Each fuzzer runs, from the same seed each time, and what must hold holds."""
    result = fuzz(parser_named(name), folder, seconds=1, seed=3)

    assert result.error == ""
    assert result.outcomes
    assert result.reached


@pytest.mark.parametrize(
    ("name", "data"),
    [replay(name, *item) for name in NAMES for item in found(parser_named(name)).items()],
)
def test_what_was_found_stays_mended(name, data, folder):
    """An input that once broke something breaks nothing any more."""
    parser = parser_named(name)
    parser.seeds(folder / "seeds")

    error = fails(parser, data, folder)

    assert error == ""


def brittle(data, folder, thorough):
    """Break where two conditions hold that no seed fulfils."""
    try:
        record = json.loads(data)
        deep = record["deep"]
    except (ValueError, TypeError, KeyError):
        return "nothing"
    if isinstance(deep, list) and len(deep) > 1 and type(deep[0]) is not type(deep[1]):
        raise TypeError("two kinds")
    return "something"


BRITTLE = Parser(
    "brittle", "json", ("test_fuzz.py",), (b"1,",), lambda _: [b'{"deep": ["a"], "more": 3}'],
    brittle,
)  # fmt: skip


def test_a_fuzzer_finds_what_is_there(folder):
    """A fault behind several conditions is found soon, and what it does not need is left out."""
    result = fuzz(BRITTLE, folder, seconds=60, seed=1)
    small = shrink(BRITTLE, result.violation, folder, seconds=60)

    assert result.error.endswith("TypeError: two kinds\n")
    assert fails(BRITTLE, small, folder).endswith("TypeError: two kinds\n")
    assert len(small) < len(b'{"deep": ["a", 1], "more": 3}')


def test_the_same_seed_gives_the_same_inputs(folder, monkeypatch):
    """Whoever repeats a run with its seed sees what it saw."""
    monkeypatch.setattr(_loop, "time", SimpleNamespace(monotonic=count().__next__))
    fed: list[list[bytes]] = []
    for _ in range(2):
        fed.append([])
        note = fed[-1].append
        parser = Parser("x", "text", ("test_fuzz.py",), (b"ab",), lambda _: [b"one", b"two"],
                        lambda data, _, thorough, note=note: str(note(data)))  # fmt: skip
        fuzz(parser, folder, seconds=50, seed=5)

    assert len(set(fed[0])) > 10
    assert fed[0] == fed[1]


def test_an_input_that_takes_for_ever_is_a_violation(folder, monkeypatch):
    """What hangs is cut, by the same clock that bounds every input, and told."""
    monkeypatch.setattr(_loop, "HANGS_S", 0.05)
    parser = Parser("x", "text", (), (b"a",), lambda _: [b"one"], lambda *_, **__: _forever())

    result = fuzz(parser, folder, seconds=5, seed=1)

    assert result.violation == b"one"
    assert "HangsError: took longer than 0.05 s" in result.error


def _forever():
    while True:
        pass
