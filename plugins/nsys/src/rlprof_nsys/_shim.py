"""What nsys launches in the program's place: it says what nsys has given it, and waits.

Run as a file, alone: `python -I -S _shim.py FILE HOLD`. nsys records what is started with the
variables that this process has got; the launcher becomes the program with them. To nsys this
process is the program: the session lasts as long as it does.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress

_WAIT = "import os, sys; os.read(int(sys.argv[1]), 1)"
"""The keeper closes the other end, at its own end too."""


def main(born: str, hold: str) -> int:
    """Write the environment to *born*, a character a byte; then wait, unseen, for *hold*'s end."""
    with open(f"{born}.part", "w", encoding="utf-8") as file:  # noqa: PTH123 -- few imports
        named = os.environb.items()
        json.dump({name.decode("latin-1"): value.decode("latin-1") for name, value in named}, file)
    os.rename(f"{born}.part", born)  # noqa: PTH104
    # Without what nsys has put into its environment: this process is nothing to record.
    waits = [sys.executable, "-I", "-S", "-c", _WAIT, hold]
    with suppress(OSError):
        os.execve(waits[0], waits, {"TMPDIR": os.environ.get("TMPDIR", "")})  # noqa: S606
    os.read(int(hold), 1)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
