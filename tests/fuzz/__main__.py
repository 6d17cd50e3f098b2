"""`python -m tests.fuzz NAME --minutes 10 [--seed N]`; without NAME: list the parsers."""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
from pathlib import Path

from tests.fuzz._loop import fails, file_name, fuzz, shrink
from tests.fuzz.parsers import NAMES, parser_named


def main() -> int:
    """Run one fuzzer; exit code 1: something did not hold."""
    sys.stdout.reconfigure(errors="backslashreplace")  # what is fed may hold any text
    args = _arguments()
    if args.name is None:
        print("\n".join(NAMES))
        return 0
    parser = parser_named(args.name)
    logging.disable()  # what is logged of broken inputs is no news here
    with tempfile.TemporaryDirectory(prefix="rlprof-fuzz-") as name:
        folder = Path(name)
        if args.replay:
            error = fails(parser, args.replay.read_bytes(), folder)
            print(error or f"{parser.name}: {args.replay}: everything holds")
            return bool(error)
        print(f"{parser.name}: seed {args.seed}, {args.minutes:g} minutes", flush=True)
        result = fuzz(
            parser, folder, seconds=60 * args.minutes, seed=args.seed,
            tell=lambda result: print(f"{parser.name}: {result}", flush=True),
        )  # fmt: skip
        print(f"{parser.name}: {result}")
        if result.violation is None:
            print(f"{parser.name}: nothing found")
            return 0
        small = shrink(parser, result.violation, folder, seconds=60)
        args.out.mkdir(parents=True, exist_ok=True)
        file = args.out / file_name(parser, small)
        file.write_bytes(small)
        print(fails(parser, small, folder) or result.error)
        print(f"{parser.name}: VIOLATION, {len(small)} bytes: {small[:200]!r}")
        print(f"again: python -m tests.fuzz {parser.name} --replay {file}")
        return 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("name", nargs="?", choices=NAMES)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--replay", type=Path, metavar="FILE", help="feed just this")
    parser.add_argument("--out", type=Path, default=Path("outputs/fuzz"), metavar="DIR")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
