"""Arguments that several commands take."""

from __future__ import annotations

import argparse
import re
from contextlib import suppress

from rlprof.schedule import parse_steps
from rlprof_run import LATEST, RUNS

_MOMENT = re.compile(r"(\d{1,9}(?:\.\d{0,9})?|\.\d{1,9})(ms|s|m|h)?", re.ASCII)
_UNITS_NS = {"ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9}


def add_run(parser: argparse.ArgumentParser, words: str = "", *, runs: str = "") -> None:
    """Add the argument that names a run; the default is the latest run in the default folder.

    *runs* says what a folder of runs stands for, where that is not the latest run.
    """
    latest = f"a folder of runs, or `{LATEST}`, stands for the latest run (default: %(default)s)"
    other = f"{runs} (default: %(default)s); `{LATEST}` is the latest run there"
    words = f"a run folder or the id of a run{words}" + (f", or {other}" if runs else f"; {latest}")
    parser.add_argument("path", metavar="RUN", nargs="?", default=RUNS, help=words)


def add_json(parser: argparse.ArgumentParser, what: str) -> None:
    """Add `--json`, which prints *what*."""
    parser.add_argument("--json", action="store_true", help=f"print {what} as JSON")


def duration(text: str) -> float:
    """Read a number of seconds, as `--timeout` and `--window-s` take it."""
    with suppress(ValueError):
        if 0 < float(text) <= 86400:
            return float(text)
    raise argparse.ArgumentTypeError(f"expected seconds, more than 0 and up to 86400, got {text!r}")


def moment(text: str) -> int:
    """Read a time since the start, in ns: `12.5` (seconds), `90s`, `2m`, `1.5h`, `300ms`."""
    found = _MOMENT.fullmatch(text.strip())
    if found is None:
        raise argparse.ArgumentTypeError(f"expected a time like 12.5, 90s, 2m or 1h, got {text!r}")
    return round(float(found[1]) * _UNITS_NS[found[2] or "s"])


def names(text: str) -> list[str]:
    """Read `one,other`."""
    found = [word.strip() for word in text.split(",")]
    if not all(found):
        raise argparse.ArgumentTypeError(f"expected a name, or several like a,b, got {text!r}")
    return found


def steps(text: str) -> list[range]:
    """Read `3,5-7`, where 7 is a step, too."""
    try:
        words = [int(word) if word.isdecimal() else word for word in names(text)]
        return list(parse_steps(words).ranges)
    except (ValueError, argparse.ArgumentTypeError) as exc:
        what = f"expected steps like 3 or 3,5-7, got {text!r}"
        raise argparse.ArgumentTypeError(what) from exc
