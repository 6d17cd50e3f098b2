"""A program between the tool and the real nsys, in which some calls hang."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path


def install(home: Path, nsys: str, **hangs: list[int]) -> str:
    """Put it into *home*; *hangs* say of a verb at which of its calls it hangs."""
    home.mkdir(parents=True)
    program = home / "nsys"
    given = json.dumps({"nsys": nsys, "home": str(home), "hangs": hangs})
    program.write_text(
        f"#!{sys.executable} -IS\nimport runpy, sys\n"
        f"main = runpy.run_path({__file__!r})['main']\nsys.exit(main({given!r}, sys.argv[1:]))\n"
    )
    program.chmod(0o755)
    return str(program)


def main(given: str, argv: list[str]) -> None:
    """Call the real one, late where it hangs."""
    told = json.loads(given)
    real = [told["nsys"], *argv]
    if argv[-1] in ("--help", "--version"):
        os.execv(real[0], real)  # noqa: S606
    calls = Path(told["home"]) / f"{argv[0]}.calls"
    with calls.open("a") as file:
        file.write("x")
    if calls.stat().st_size in told["hangs"].get(argv[0], []):
        time.sleep(300)
    os.execv(real[0], real)  # noqa: S606
