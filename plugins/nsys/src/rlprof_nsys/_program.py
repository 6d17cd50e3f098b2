"""The installed nsys: where it is, which options it knows, and calls of it that end in time."""

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
    from collections.abc import Sequence

HELP_S = 20.0
OLDEST = "2023.4"
"""The oldest release that rlprof drives; tests run on 2023.4.4."""
_USUAL = (
    "/usr/local/cuda/bin/nsys", "/opt/nvidia/nsight-systems/*/bin/nsys",
    "/opt/nvidia/nsight-systems-cli/*/bin/nsys", "/usr/lib/nsight-systems/bin/nsys",
)  # fmt: skip
_OPTION = re.compile(r"^\s+(?:-\w, )?--([a-z][a-z0-9-]*)(?:\[([a-z|]+)\])?", re.MULTILINE)
_IDLE = re.compile(r"WARNING|usage:|Try 'nsys|Processing \[|.*\[ *=*\d+%")
"""Lines it prints besides the reason: hints and progress."""
_NAMED = re.compile(r"Illegal --|unrecogni[sz]ed option")
"""What says which option is wrong; lines about that option follow."""
_KEPT = ("HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "USER", "XDG_RUNTIME_DIR")
"""What nsys needs; the rest could end up in a report."""


@attrs.frozen
class Said:
    """How a call of nsys ended."""

    code: int | None
    """None: not in time, and it was ended."""
    text: str

    @property
    def sentence(self) -> str:
        """What it said last, on one line."""
        return sentence_in(self.text) or "it said nothing"


@attrs.frozen
class Program:
    """One nsys, by its path."""

    path: str
    folder: str = ""
    """TMPDIR of its calls; empty: that of the process."""

    def call(self, *args: str, timeout_s: float) -> Said:
        """Run it with *args*; what takes longer than *timeout_s* is ended, and its group with it.

        Without the variables by which nsys gets into a process: what we call is not recorded.
        """
        return run([self.path, *args], timeout_s=timeout_s, folder=self.folder)

    def version(self) -> str:
        """Return what it calls itself: `2023.4.4.54-2344336`; empty where it does not say."""
        said = self.call("--version", timeout_s=HELP_S)
        found = re.search(r"\d{4}\.\d+[\w.-]*", said.text)
        return found[0] if said.code == 0 and found else ""

    def help(self, verb: str) -> str:
        """Return its help on *verb*; empty where it has none."""
        said = self.call(verb, "--help", timeout_s=HELP_S)
        return said.text if said.code == 0 else ""

    def sessions(self, *, timeout_s: float) -> frozenset[str] | None:
        """Name the sessions that take orders, by name and by id; None: it does not say.

        One that was shut down is listed for seconds, or for as long as its program lives.
        """
        said = self.call("sessions", "list", timeout_s=timeout_s)
        if said.code != 0:
            return None
        lines = [line.split() for line in said.text.splitlines()]
        return frozenset(word for words in lines if "Shutdown" not in words for word in words)

    @property
    def importer(self) -> str:
        """Find what turns a `.qdstrm` into a report; empty: it is not there.

        Debian has it where nsys itself does not look.
        """
        home = Path(os.path.realpath(self.path)).parent
        debian = home / "../../../nsight-systems/host-linux-x64"
        for folder in (home / "../host-linux-x64", home, *home.parent.glob("host-*"), debian):
            file = folder / "QdstrmImporter"
            if file.is_file():
                return str(file)
        return ""


def find_nsys(asked: str) -> str:
    """Find the program *asked*, by its path, on PATH, or in the usual folders; empty: nowhere."""
    found = shutil.which(os.path.expanduser(asked))  # noqa: PTH111 -- a name may be no path
    if found is not None or asked != "nsys":
        return os.path.abspath(found) if found else ""  # noqa: PTH100 -- a link may lead anywhere
    for pattern in _USUAL:
        there = sorted(Path("/").glob(pattern.lstrip("/")))
        if there:
            return str(there[-1])
    return ""


def too_old(path: str, version: str) -> str:
    """Say so of a *version* below the oldest that rlprof drives; empty: it is not."""
    found = re.match(r"(\d{4})\.(\d+)", version)
    if found is None or (int(found[1]), int(found[2])) >= tuple(map(int, OLDEST.split("."))):
        return ""
    return (
        f"{path} is Nsight Systems {version}, and rlprof drives {OLDEST} and newer; install a "
        "newer release, or set nsys: PATH"
    )


def sentence_in(text: str) -> str:
    """Find the line in what nsys printed that says most; empty: it printed nothing."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    plain = [line for line in lines if not _IDLE.match(line)]
    told = [line for line in plain if _NAMED.match(line)]
    return (told or plain or lines or [""])[-1][:300]


def options_in(text: str) -> frozenset[str]:
    """Name the options that a help text describes, those left out that are supported no more."""
    found: set[str] = set()
    for match in _OPTION.finditer(text):
        name, ends = match[1], match[2]
        found |= {f"{name}{end}" for end in ends.split("|")} if ends else {name}
    return frozenset(found)


def values_in(text: str, option: str) -> frozenset[str]:
    """Name the values that a help text gives for *option*."""
    found = re.search(rf"^\s+(?:-\w, )?--{option}=\S*\s*$", text, re.MULTILINE)
    if found is None:
        return frozenset()
    own = re.split(r"\n\s+(?:\(\w+\) )?-{1,2}\w", text[found.end() :], maxsplit=1)[0]
    return frozenset(re.findall(r"['`]([\w-]+)['`]", own))


def run(argv: Sequence[str], *, timeout_s: float, folder: str = "") -> Said:
    """Run *argv* in a session of its own, with few variables, and return what it said.

    Not in the folder of the program: `nsys stats` runs each Python file that lies there.
    """
    env = {name: os.environ[name] for name in _KEPT if name in os.environ}
    tmp = folder or os.environ.get("TMPDIR", "")
    env |= {"TMPDIR": tmp} if tmp else {}
    # Not a pipe: what it leaves running could hold that open for ever.
    log = os.memfd_create("said")
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
                _end(process)
        return Said(code, _text(log))
    except OSError as exc:
        return Said(127, f"{argv[0]}: {exc.strerror}")
    finally:
        os.close(log)


def _end(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    with suppress(subprocess.TimeoutExpired):
        process.wait(2)


def _text(log: int) -> str:
    size = os.fstat(log).st_size
    begin = max(0, size - (1 << 20))
    return os.pread(log, size - begin, begin).decode("utf-8", "replace").replace("\r", "\n")
