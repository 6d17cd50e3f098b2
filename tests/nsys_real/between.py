"""A program between the tool and the real nsys, which does to some calls what goes wrong."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path


def install(home: Path, nsys: str, **faults: dict[str, list[int]]) -> str:
    """Put it into *home*; *faults* say of a verb what goes wrong, and at which of its calls.

    `stop={"hang": [2]}`: the second stop hangs. What there is: `hang`, `fail`, `empty`.
    """
    home.mkdir(parents=True)
    program = home / "nsys"
    given = json.dumps({"nsys": nsys, "home": str(home), "faults": faults})
    program.write_text(
        f"#!{sys.executable} -IS\nimport runpy, sys\n"
        f"main = runpy.run_path({__file__!r})['main']\nsys.exit(main({given!r}, sys.argv[1:]))\n"
    )
    program.chmod(0o755)
    return str(program)


def main(given: str, argv: list[str]) -> int:
    """Call the real one, but where something goes wrong."""
    told = json.loads(given)
    real = [told["nsys"], *argv]
    if argv[-1] in ("--help", "--version"):
        os.execv(real[0], real)  # noqa: S606
    calls = Path(told["home"]) / f"{argv[0]}.calls"
    with calls.open("a") as file:
        file.write("x")
    count = calls.stat().st_size
    fault = next((what for what, at in told["faults"].get(argv[0], {}).items() if count in at), "")
    if fault == "hang":
        time.sleep(300)
    if fault == "fail":
        print("Agent lost", file=sys.stderr)
        return 1
    output = Path(told["home"]) / "output"
    for arg in argv:
        if argv[0] == "start" and arg.startswith("--output="):
            output.write_text(arg.partition("=")[2])
    if fault != "empty":
        os.execv(real[0], real)  # noqa: S606
    code = subprocess.call(real)
    report, end = Path(f"{output.read_text()}.nsys-rep"), time.monotonic() + 1
    while time.monotonic() < end:
        report.write_bytes(b"")  # nsys' agent removes a report it finds empty, once, soon after
        time.sleep(0.02)
    return code
