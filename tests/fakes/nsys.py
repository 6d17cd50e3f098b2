"""A stand-in for Nsight Systems that records nothing; it exports the file `database`."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

_ASKED = ("--help", "--version", "list")
VERSION = "2023.4.4.54-234433681190v0"
LAUNCH_HELP = """
usage: nsys launch [<args>] [application] [<application args>]

\t(Deprecated) --cpuctxsw=
\t   WARNING: This switch is no longer supported.
\t--cuda-graph-trace=
\t   Possible values are 'graph' or 'node'.
\t--nvtx-domain-[include|exclude]=
\t-t, --trace=
\t--wait=
"""
_STARTS = ("capture-range", "capture-range-end", "cpuctxsw", "force-overwrite",
           "gpu-metrics-device", "output", "sample", "session")  # fmt: skip
START_HELP = "usage: nsys start [<args>]\n" + "".join(f"\t-x, --{one}=\n" for one in _STARTS)


@dataclass(frozen=True)
class Fake:
    home: Path

    @property
    def path(self) -> str:
        return str(self.home / "bin/nsys")

    @property
    def calls(self) -> list[list[str]]:
        file = self.home / "calls"
        lines = file.read_text().splitlines() if file.exists() else []
        return [call for call in map(json.loads, lines) if call[-1] not in _ASKED]

    @property
    def verbs(self) -> list[str]:
        return [call[0] for call in self.calls]

    def goes_wrong(self, **faults: object) -> None:
        (self.home / "faults").write_text(json.dumps(faults))

    def session(self, name: str) -> None:
        (self.home / f"{name}.session").write_text(json.dumps({"pid": os.getpid()}))


def install(home: Path) -> Fake:
    program = home / "bin/nsys"
    program.parent.mkdir(parents=True)
    main = f"runpy.run_path({__file__!r})['main']({str(home)!r}, sys.argv[1:])"
    program.write_text(f"#!{sys.executable} -IS\nimport runpy, sys\nsys.exit({main})\n")
    program.chmod(0o755)
    fake = Fake(home)
    fake.goes_wrong()
    return fake


def main(home_text: str, argv: list[str]) -> int:
    home = Path(home_text)
    with (home / "calls").open("a") as file:
        file.write(json.dumps(argv) + "\n")
    if argv == ["--version"]:
        told = json.loads((home / "faults").read_text()).get("version", VERSION)
        print(f"NVIDIA Nsight Systems version {told}")
        return 0
    if argv[-1] == "--help":
        print({"launch": LAUNCH_HELP, "start": START_HELP}[argv[0]])
        return 0
    verb = argv[0]
    given = dict(arg[2:].partition("=")[::2] for arg in argv[1:] if arg.startswith("--"))
    fault = json.loads((home / "faults").read_text()).get(verb)
    if fault == "hang":
        time.sleep(60)
    if fault == "fail" or (fault == "fail twice" and Fake(home).verbs.count(verb) <= 2):
        sys.exit("Agent lost")
    if verb == "launch":
        return _launch(home, given["session-new"], argv)
    if verb == "export":
        return _export(Path(given["output"]), fault, home / "database")
    if argv == ["sessions", "list"]:
        for known in home.glob("*.session"):
            print(f"  1017  00:04  Launched  1 {known.stem}")
        return 0
    if verb not in ("start", "stop"):
        return 0
    return _window(home, verb, given, fault)


def _launch(home: Path, session: str, argv: list[str]) -> int:
    known = home / f"{session}.session"
    known.write_text(json.dumps({"pid": os.getpid()}))
    command = next(i for i, arg in enumerate(argv[1:], 1) if not arg.startswith("--"))
    libraries = os.environ.get("LD_LIBRARY_PATH", "")
    own = {"NSYS_PROFILING_SESSION_ID": "7", "LD_LIBRARY_PATH": f"{libraries}:/usr/local/cuda/lib"}
    env = {**os.environ, **own}
    try:
        code = subprocess.call(argv[command:], env=env, close_fds=False, start_new_session=True)
    finally:
        known.unlink(missing_ok=True)
    return code


def _window(home: Path, verb: str, given: dict[str, str], fault: object) -> int:
    known = home / f"{given['session']}.session"
    try:
        state = json.loads(known.read_text())
        os.kill(state["pid"], 0)
    except (OSError, ValueError):
        sys.exit("Failed to find session")
    if verb == "start":
        if "output" in state:
            sys.exit("Configuring is not allowed in this state.")
        known.write_text(json.dumps({**state, "output": given["output"]}))
        return 0
    if "output" not in state:
        sys.exit("The request is not applicable in this state: StopRequest.")
    output = state.pop("output").replace("%%", "%")
    known.write_text(json.dumps(state))
    report = Path(f"{output}.nsys-rep")
    report.write_bytes(b"" if fault == "empty" else b"a report " * 1000)
    print(f"[1/1] [0%    ] x\r[1/1] [=====100%] x\nGenerated:\n    {report}")
    return 0


def _export(file: Path, fault: object, database: Path) -> int:
    if database.exists():
        shutil.copy(database, file)
        return 0
    with sqlite3.connect(file) as tables:
        tables.execute("CREATE TABLE StringIds (id, value)")
        if fault != "blind":  # a domain, and a range in it
            tables.execute(
                "CREATE TABLE NVTX_EVENTS (eventType, globalTid, domainId, text, textId)"
            )
            rows = (75, 1 << 24, 1, "rlprof", None), (59, 1 << 24, 1, "self-test", None)
            tables.executemany("INSERT INTO NVTX_EVENTS VALUES (?, ?, ?, ?, ?)", rows)
    tables.close()
    return 0
