"""The installed nsys: its path, its options, calls with a time limit, and its conversions."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

HELP_S = 20.0
_MOST = 1 << 20
OLDEST = "2023.4"
"""The oldest release that rlprof supports; tests run on 2023.4.4."""
_USUAL = {"nsys": (
    "usr/local/cuda/bin/nsys", "opt/nvidia/nsight-systems/*/bin/nsys",
    "opt/nvidia/nsight-systems-cli/*/bin/nsys", "usr/lib/nsight-systems/bin/nsys",
)}  # fmt: skip
"""Where a program is that is asked for by its name and not on PATH."""
_OPTION = re.compile(r"^\s+(?:-\w, )?--([a-z][a-z0-9-]*)(?:\[([a-z|]+)\])?", re.MULTILINE)
_IDLE = re.compile(r"WARNING|usage:|Please refer|https?:|Try 'nsys|Processing \[|.*\[ *=*\d+%")
"""Printed lines that are not the reason: hints and progress."""
_NAMED = re.compile(r"Illegal --|unrecogni[sz]ed option")
"""The line that names the wrong option; more lines about the option follow it."""
_KEPT = ("HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "USER", "XDG_RUNTIME_DIR")
"""Variables that nsys needs; any other could end up in a report."""
_LEAST_S, _PER_MB_S = 60.0, 10.0
"""A report of 11 MB took 19 s to import and 4 s to export on a busy machine."""
_NO_IMPORTER = (
    "nsys has no importer, so it left raw data (.qdstrm); install all of Nsight Systems, or link "
    "its folder host-linux-x64 next to target-linux-x64"
)


@attrs.frozen
class Outcome:
    """How a call of nsys ended."""

    code: int | None
    """None: it did not end in time and was killed."""
    text: str

    @property
    def sentence(self) -> str:
        """The most useful line of its output."""
        return sentence_in(self.text) or "it said nothing"


@attrs.frozen
class Program:
    """One nsys, by its path."""

    path: str
    folder: str = ""
    """TMPDIR of its calls; empty: TMPDIR of this process."""

    def call(self, *args: str, timeout_s: float) -> Outcome:
        """Run nsys with *args*; kill it and its process group after *timeout_s*.

        The variables that bring nsys into a process are left out, so the call is not recorded.
        """
        return run([self.path, *args], timeout_s=timeout_s, folder=self.folder)

    def version(self) -> str:
        """Return its version, such as `2023.4.4.54-2344336`; empty: it prints none."""
        outcome = self.call("--version", timeout_s=HELP_S)
        found = re.search(r"\d{4}\.\d+[\w.-]*", outcome.text)
        return found[0] if outcome.code == 0 and found else ""

    def help(self, verb: str) -> str:
        """Return its help on *verb*; empty: it has none."""
        outcome = self.call(verb, "--help", timeout_s=HELP_S)
        return outcome.text if outcome.code == 0 else ""

    def sessions(self, *, timeout_s: float) -> frozenset[str] | None:
        """Return the names and ids of sessions that accept commands; None: nsys lists none.

        A session that was shut down is listed for seconds more, or until its program ends.
        """
        outcome = self.call("sessions", "list", timeout_s=timeout_s)
        if outcome.code != 0:
            return None
        lines = [line.split() for line in outcome.text.splitlines()]
        return frozenset(word for words in lines if "Shutdown" not in words for word in words)

    @property
    def importer(self) -> str:
        """The program that turns a `.qdstrm` into a report; empty: it is not installed.

        Debian installs it in a folder that nsys does not search.
        """
        home = Path(os.path.realpath(self.path)).parent
        debian = home / "../../../nsight-systems/host-linux-x64"
        for folder in (home / "../host-linux-x64", home, *home.parent.glob("host-*"), debian):
            file = folder / "QdstrmImporter"
            if file.is_file():
                return str(file)
        return ""


def find_nsys(asked: str) -> str:
    """Find the program *asked* by path, on PATH or in the usual folders; empty: not found."""
    found = shutil.which(os.path.expanduser(asked))  # noqa: PTH111 -- a name may be no path
    if found:
        return os.path.abspath(found)  # noqa: PTH100 -- a link may lead anywhere
    there = (sorted(Path("/").glob(pattern)) for pattern in _USUAL.get(asked, ()))
    return str(next(filter(None, there), [""])[-1])


def too_old(path: str, version: str) -> str:
    """Return an error if *version* is older than rlprof supports; empty: it is new enough."""
    found = re.match(r"(\d{4})\.(\d+)", version)
    if found is None or (int(found[1]), int(found[2])) >= tuple(map(int, OLDEST.split("."))):
        return ""
    return (
        f"{path} is Nsight Systems {version}, and rlprof needs {OLDEST} or newer; install a "
        "newer release, or set nsys: PATH"
    )


def sentence_in(text: str) -> str:
    """Return the most useful line of the output of nsys; empty: it printed nothing."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    plain = [line for line in lines if not _IDLE.match(line)]
    named = [line for line in plain if _NAMED.match(line)]
    return (named or plain or lines or [""])[-1][:300]


def options_in(text: str) -> frozenset[str]:
    """Return the options that a help text describes, without those no longer supported."""
    found: set[str] = set()
    for match in _OPTION.finditer(text):
        name, ends = match[1], match[2]
        found |= {f"{name}{end}" for end in ends.split("|")} if ends else {name}
    return frozenset(found)


def run(argv: Sequence[str], *, timeout_s: float, folder: str = "") -> Outcome:
    """Run *argv* in a new session with few variables, and return its exit code and output.

    It does not run in the current folder, because nsys may run Python files there.
    """
    env = {name: os.environ[name] for name in _KEPT if name in os.environ}
    tmp = folder or os.environ.get("TMPDIR", "")
    env |= {"TMPDIR": tmp} if tmp else {}
    # Not a pipe: a process that it leaves running could hold the pipe open forever.
    log = os.memfd_create("outcome")
    try:
        process = subprocess.Popen(
            argv, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/",
            start_new_session=True,
        )  # fmt: skip
        try:
            code: int | None = process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                with suppress(subprocess.TimeoutExpired):
                    process.wait(2)
        begin = max(0, os.fstat(log).st_size - _MOST)
        return Outcome(code, os.pread(log, _MOST, begin).decode("utf-8", "replace"))
    except OSError as exc:
        return Outcome(127, f"{argv[0]}: {exc.strerror}")
    finally:
        os.close(log)


class ConversionError(Exception):
    """nsys could not write the file."""


def program_of(notes: Mapping[str, object], tmp: Path) -> Program | None:
    """Find the nsys that recorded, or another one; None: this host has no nsys."""
    asked = notes.get("nsys")
    path = (find_nsys(asked) if isinstance(asked, str) and asked else "") or find_nsys("nsys")
    return Program(path, str(tmp)) if path else None


def imported(program: Program, raw: Path, report: Path) -> None:
    """Convert the raw data of an interrupted nsys into *report*."""
    if not program.importer:
        raise ConversionError(_NO_IMPORTER)
    argv = [program.importer, "-i", str(raw), "-o", str(report)]
    outcome = run(argv, timeout_s=_within_s(raw), folder=program.folder)
    _see_that_it_is_there("nsys' importer", outcome, report)


def to_sqlite(program: Program, report: Path, database: Path) -> None:
    """Convert *report* into *database*."""
    argv = ["export", "--type=sqlite", "--quiet=true", "--force-overwrite=true"]
    within_s = _within_s(report)
    outcome = program.call(*argv, f"--output={database}", str(report), timeout_s=within_s)
    _see_that_it_is_there("nsys export", outcome, database)


def _within_s(file: Path) -> float:
    return _LEAST_S + file.stat().st_size / 1e6 * _PER_MB_S


def _see_that_it_is_there(who: str, outcome: Outcome, made: Path) -> None:
    if outcome.code != 0 or not made.is_file():
        late = "did not finish in time: " if outcome.code is None else ""
        raise ConversionError(f"{who}: {late}{outcome.sentence}")
