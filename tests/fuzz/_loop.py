"""One fuzz run: take an input, change it, feed it, keep it if it reached something new.

The same seed gives the same inputs, as long as as many fit into the time. A run ends at the first
input after which something does not hold, or that takes longer than `HANGS_S`.
"""

from __future__ import annotations

import hashlib
import random
import re
import signal
import time
import traceback
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from tests.fuzz._mutate import Mutator
from tests.fuzz._reach import Reach

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

HANGS_S = 20
"""No input of this size may take so long, also on a busy machine."""
_THOROUGH = 8
"""Of so many inputs one is fed to everything."""
_MOST = 4_000
"""Inputs kept; a tenth of them may be kept for what came out, not for where they went."""
_FOUND = Path(__file__).parent / "found"
_VARIES = re.compile(r"(?<=got )[^|]*|'[^']*'|\"[^\"]*\"|\d+")
"""What makes no two outcomes different."""


class HangsError(BaseException):
    """Not an Exception: the parser must not take it for something of its own."""


@attrs.frozen
class Parser:
    """What is fed, and what must hold."""

    name: str
    kind: str
    """How inputs are laid out: `yaml` or `text`."""
    traced: tuple[str, ...]
    """Parts of the paths of the parser's files."""
    tokens: tuple[bytes, ...]
    seeds: tuple[bytes, ...]
    """Inputs as people and programs write them."""
    check: Callable[..., str]
    """`check(data, folder, thorough=True)` feeds one input and says in words what came out; raises
    if something does not hold. Most inputs are not fed to what is slow and only `thorough`."""


@attrs.define
class Result:
    """What a run has seen."""

    runs: int = 0
    seconds: float = 0.0
    outcomes: set[str] = attrs.field(factory=set)
    kept: int = 0
    reached: int = 0
    violation: bytes | None = None
    error: str = ""

    def __str__(self) -> str:
        rate = self.runs / max(self.seconds, 1e-9)
        return (
            f"{self.runs:,} runs in {self.seconds:.0f} s, {rate:,.0f} runs/s, "
            f"{len(self.outcomes)} unique outcomes, {self.kept} inputs kept, "
            f"{self.reached:,} steps from line to line reached"
        )


def fuzz(
    parser: Parser,
    folder: Path,
    *,
    seconds: float,
    seed: int,
    tell: Callable[[Result], object] = lambda _: None,
) -> Result:
    """Feed *parser* for *seconds*, with scratch files in *folder*."""
    chance = random.Random(seed)  # noqa: S311 -- nobody guesses
    reach, result = Reach(parser.traced), Result()
    kept = [seed[:20_000] for seed in parser.seeds]
    mutator = Mutator(chance, (*parser.tokens, *_words(kept)), parser.kind)
    place = _new(folder / "input")
    began, told = time.monotonic(), 0.0
    waiting = list(kept)
    while result.seconds < seconds or waiting:
        data = waiting.pop() if waiting else _next(mutator, chance, kept)
        result.runs += 1
        feed = partial(parser.check, data, place, thorough=result.runs % _THOROUGH == 0)
        try:
            with _deadline():
                outcome, is_new = reach.during(feed)
        except (Exception, HangsError):
            result.violation, result.error = data, traceback.format_exc()
            break
        outcome = _VARIES.sub("~", outcome)
        is_new = is_new and len(kept) < _MOST
        if is_new or (outcome not in result.outcomes and len(result.outcomes) < _MOST // 10):
            kept.append(data)
        result.outcomes.add(outcome)
        result.seconds = time.monotonic() - began
        result.kept, result.reached = len(kept), len(reach)
        if result.seconds - told >= 10:
            told = result.seconds
            tell(result)
    return result


def found(parser: Parser) -> dict[str, bytes]:
    """Return the inputs in `found/`: each broke something once."""
    return {file.name: file.read_bytes() for file in sorted(_FOUND.glob(f"{parser.name}-*.bin"))}


def fails(parser: Parser, data: bytes, folder: Path) -> str:
    """Feed *data* once; return the traceback, or nothing."""
    try:
        with _deadline():
            parser.check(data, _new(folder / "input"), thorough=True)
    except (Exception, HangsError):
        return traceback.format_exc()
    return ""


def shrink(parser: Parser, data: bytes, folder: Path, *, seconds: float) -> bytes:
    """Leave out of *data* what the same failure, raised at the same line, does not need."""
    wanted = _signature(fails(parser, data, folder))
    ends = time.monotonic() + seconds
    size = max(1, len(data) // 2)
    while size and time.monotonic() < ends:
        at, before = 0, len(data)
        while at < len(data) and time.monotonic() < ends:
            shorter = data[:at] + data[at + size :]
            if _signature(fails(parser, shorter, folder)) == wanted:
                data = shorter
            else:
                at += size
        size = size if size == 1 and len(data) < before else size // 2
    return data


def file_name(parser: Parser, data: bytes) -> str:
    """Name the file that reproduces a violation."""
    return f"{parser.name}-{hashlib.sha256(data).hexdigest()[:8]}.bin"


def _next(mutator: Mutator, chance: random.Random, kept: list[bytes]) -> bytes:
    # Half of the time one of the youngest: what is behind a new branch is not yet known.
    young = kept[-20:] if chance.random() < 0.5 else kept
    return mutator.change(chance.choice(young), chance.choice(kept))


def _words(seeds: list[bytes]) -> list[bytes]:
    found = {word for seed in seeds for word in re.findall(rb"[A-Za-z_][A-Za-z0-9_]{1,30}", seed)}
    return sorted(found)[:300]


def _signature(error: str) -> tuple[object, ...]:
    """Tell one failure from another: where it was raised, and what its last line says."""
    places = re.findall(r'File "([^"]+)", line (\d+)', error)
    return (*places[-1:], _VARIES.sub("~", error.strip().splitlines()[-1])) if error else ()


def _new(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@contextmanager
def _deadline() -> Iterator[None]:
    def ring(*_: Any) -> None:
        raise HangsError(f"took longer than {HANGS_S} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, HANGS_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
