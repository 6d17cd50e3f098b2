"""The stand-in that nsys launches instead of the program: it reports its environment, and waits.

It runs as a single file: `python -I -S _shim.py FILE HOLD`. nsys records any process that starts
with the variables of the stand-in, so the launcher executes the program with them. nsys takes the
stand-in for the program: the session lasts until the stand-in ends.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress

_WAIT = "import os, sys; os.read(int(sys.argv[1]), 1)"
"""The other end closes when the keeper closes it or ends."""


def main(born: str, hold: str) -> int:
    """Write the environment to *born*; then wait until *hold* closes."""
    with open(f"{born}.part", "w", encoding="utf-8") as file:  # noqa: PTH123 -- few imports
        json.dump(dict(os.environ), file)
    os.rename(f"{born}.part", born)  # noqa: PTH104
    # Drop the variables of nsys, so that nsys does not record this process.
    waits = [sys.executable, "-I", "-S", "-c", _WAIT, hold]
    with suppress(OSError):
        os.execve(waits[0], waits, {"TMPDIR": os.environ.get("TMPDIR", "")})  # noqa: S606
    os.read(int(hold), 1)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
