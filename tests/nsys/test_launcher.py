"""The launcher on a stand-in for nsys: what the program is born with, and how both end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rlprof_nsys._arguments import LAUNCHER, Asked
from rlprof_nsys._mark import MARK, read_mark
from tests.fakes import nsys as fake_nsys

pytestmark = pytest.mark.slow

TELL = """
import json, os, sys
print(json.dumps({"env": dict(os.environ), "pid": os.getpid(), "argv": sys.argv[1:],
                  "cwd": os.getcwd(), "in": sys.stdin.read(), "parent": os.getppid()}))
sys.stdout.flush()
"""
WAIT = """
import os, signal, sys, time
def told(number, _):
    os.write(1, f"told {number}\\n".encode())  # a print could be under way
    sys.exit(5)
signal.signal(signal.SIGTERM, told)
print(os.getpid(), flush=True)
time.sleep(60)
"""


def environment(tmp_path, **more):
    """The environment of a test, in which nothing is under nsys."""
    temp = tmp_path / "tmp"
    temp.mkdir(exist_ok=True)
    env = {name: value for name, value in os.environ.items() if "NSYS" not in name}
    return {**env, "TMPDIR": str(temp), **more}


def command(nsys, **more):
    path = nsys if isinstance(nsys, str) else nsys.path
    return [*LAUNCHER, Asked("actor-0", path, ("nvtx", "ucx"), **more).text()]


def launched(tmp_path, nsys, *program, more=None, code=0, env=None, text="words\n", cwd=None):
    """Run *program* by the launcher to its end."""
    done = subprocess.run(
        [*command(nsys, **(more or {})), *program],
        env=env or environment(tmp_path),
        cwd=cwd,
        input=text,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == code, done.stderr
    return done


def told(tmp_path, nsys, *arguments, **more):
    """Return what a program says of itself."""
    done = launched(tmp_path, nsys, sys.executable, "-c", TELL, *arguments, **more)
    return json.loads(done.stdout), done.stderr


def left(tmp_path):
    """What is left when nobody has anything more to do: folders, processes with TMPDIR in one."""
    end = time.monotonic() + 20
    while (found := there(tmp_path)) and time.monotonic() < end:
        time.sleep(0.05)
    return found


def there(tmp_path):
    temp = str(tmp_path / "tmp")
    processes = []
    for file in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"{temp}/rlprof-nsys".encode() in file.read_bytes():
                processes.append(file.parent.name)
        except OSError:
            continue
    return [*(path.name for path in Path(temp).iterdir()), *processes]


def test_a_program_is_born_as_it_would_be_alone(nsys, tmp_path):
    """Its arguments, folder, input and environment are its own, and so is its parent."""
    said, _ = told(tmp_path, nsys, "a b", "--", "$HOME")

    mine = environment(tmp_path)
    assert said["argv"] == ["a b", "--", "$HOME"]
    assert (said["in"], said["cwd"]) == ("words\n", str(Path.cwd()))
    changed = {name for name in {*mine, *said["env"]} if mine.get(name) != said["env"].get(name)}
    assert changed == {MARK, "NSYS_PROFILING_SESSION_ID"}
    assert said["parent"] == os.getpid()
    assert left(tmp_path) == []


def test_no_signal_is_ignored_that_python_ignores(nsys, tmp_path):
    """A program that is not Python ends when nobody reads its pipe, under nsys and without it."""
    status = "grep", "SigIgn", "/proc/self/status"
    alone = subprocess.run(status, capture_output=True, text=True, check=True)
    for one in (nsys, str(tmp_path / "none")):
        assert launched(tmp_path, one, *status).stdout == alone.stdout


def test_the_program_knows_its_session(nsys, tmp_path):
    """The mark says which, and what was refused; options that launch's help lacks are start's."""
    options = {"cuda-graph-trace": "node", "sample": "cpu"}
    said, _ = told(tmp_path, nsys, more={"options": options})

    mark = read_mark(said["env"])
    assert mark.session == f"rlprof-actor-0-{said['pid']}"
    assert (mark.nsys, mark.trace) == (nsys.path, "nvtx")
    assert mark.refused == {"ucx": f"nsys {fake_nsys.VERSION} cannot trace it"}
    assert Path(mark.folder).parent == tmp_path / "tmp"
    (launch,) = [call for call in nsys.calls if call[0] == "launch"]
    assert set(launch[1:5]) == {
        f"--session-new={mark.session}", "--cuda-graph-trace=node", "--trace=nvtx",
        "--wait=primary",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("program", "code"),
    [
        ("import sys; sys.exit(7)", 7),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", -11),
    ],
)
def test_it_ends_as_the_program_ends(nsys, tmp_path, program, code):
    """With its exit status, or by its signal; and nothing is left."""
    launched(tmp_path, nsys, sys.executable, "-c", program, code=code)

    assert left(tmp_path) == []


def test_a_command_that_is_not_there_is_told_as_a_shell_would(nsys, tmp_path):
    """Under nsys and without it: 127, and its name."""
    for one in (nsys, str(tmp_path / "none")):
        done = launched(tmp_path, one, "/no/such/program", code=127)
        assert "/no/such/program: No such file or directory" in done.stderr


def test_a_signal_reaches_the_program_once(nsys, tmp_path):
    """SIGTERM is the program's to handle; the launcher ends as it then does."""
    process = subprocess.Popen(
        [*command(nsys), sys.executable, "-c", WAIT],
        env=environment(tmp_path), stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    process.stdout.readline()

    process.terminate()
    said = process.communicate(timeout=30)[0]

    assert (said, process.returncode) == ("told 15\n", 5)
    assert left(tmp_path) == []


GROUP = """
import subprocess, sys, time
children = [subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) for _ in "abc"]
print(*(child.pid for child in children), flush=True)
time.sleep(60)
"""


# failures.md: nsys-killed
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_who_ends_its_group_ends_all_of_it(nsys, tmp_path, number):
    """The program stays in the group it was started in, and its children with it."""
    process = subprocess.Popen(
        [*command(nsys), sys.executable, "-c", GROUP],
        env=environment(tmp_path), stdout=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    children = [Path("/proc", pid) for pid in process.stdout.readline().split()]

    os.killpg(process.pid, number)

    assert process.wait(30) == -number
    end = time.monotonic() + 20
    while any(one.exists() for one in children) and time.monotonic() < end:
        time.sleep(0.05)
    assert [one for one in children if one.exists()] == []
    assert left(tmp_path) == []
    process.stdout.close()


# failures.md: nsys-unusable, nsys-launch
@pytest.mark.parametrize(
    ("fault", "why"),
    [
        ({"launch": "fail"}, "{nsys} launch: Agent lost"),
        ({"version": "2023.3.1.92-1"}, "{nsys} is Nsight Systems 2023.3.1.92-1, and rlprof needs"),
        ("missing", "there is no program '{nsys}'; install Nsight Systems, or set nsys: PATH"),
        ("wrapped", "the process is already in nsys session 12"),
    ],
)
def test_where_nsys_cannot_be_had_the_program_runs_unprofiled(nsys, tmp_path, fault, why):
    """The reason is on stderr and in the program's mark; a process tree has one session."""
    path, env = nsys.path, environment(tmp_path)
    if fault == "missing":
        path = str(tmp_path / "no-nsys")
    elif fault == "wrapped":
        env["NSYS_PROFILING_SESSION_ID"] = "12"
    else:
        nsys.goes_wrong(**fault)

    said, errors = told(tmp_path, path, env=env)

    found = read_mark(said["env"]).why
    assert found.startswith(why.format(nsys=path))
    assert errors == f"rlprof-nsys: {found}; the program runs unprofiled\n"
    assert left(tmp_path) == []


# failures.md: nsys-unusable
def test_an_nsys_that_hangs_is_given_up(nsys, tmp_path):
    """The program runs unprofiled, once, and what hung is ended."""
    nsys.goes_wrong(launch="hang")
    script = (
        "import sys; from rlprof_nsys import _launch, launcher; _launch.START_S = 0.5;"
        "launcher.main(sys.argv[1:])"
    )
    program = [sys.executable, "-c", "print('ran')"]

    done = subprocess.run(
        [sys.executable, "-c", script, *command(nsys)[3:], *program],
        env=environment(tmp_path), capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip

    assert done.stdout == "ran\n"
    assert "it did not answer within 0.5 s; the program runs unprofiled" in done.stderr
    assert left(tmp_path) == []


# failures.md: nsys-quiet
def test_files_of_the_folder_it_is_started_in_are_not_its_modules(nsys, tmp_path):
    """A user's `json.py` and `select.py` are no part of the launcher, nor is his `rlprof_nsys`."""
    project = tmp_path / "project"
    (project / "rlprof_nsys").mkdir(parents=True)
    for name in ("json", "select", "tempfile", "attrs", "rlprof_nsys/__init__"):
        (project / f"{name}.py").write_text(f"raise SystemExit('{name} of the user was run')")

    done = launched(tmp_path, nsys, sys.executable, "-I", "-c", TELL, cwd=project)

    assert done.stderr == ""
    assert read_mark(json.loads(done.stdout)["env"]).why == ""


def test_only_the_variables_allowed_are_there(nsys, tmp_path):
    """What a report must not hold, the program does not have; what all programs need stays."""
    env = environment(tmp_path, MY_KEY="secret", RAY_JOB="1", RANK="0")

    said, _ = told(tmp_path, nsys, env=env, more={"env": ("RAY_*",)})

    assert "secret" not in json.dumps(said["env"])
    assert said["env"]["RAY_JOB"] == "1"
    assert "RANK" not in said["env"]
    assert said["env"]["PATH"] == env["PATH"]


def test_a_signal_before_the_program_is_there_ends_the_launcher(nsys, tmp_path):
    """Who gives up early is not kept waiting, and no program starts afterwards."""
    nsys.goes_wrong(launch="hang")
    mark = tmp_path / "ran"
    process = subprocess.Popen(
        [*command(nsys), sys.executable, "-c", f"open({str(mark)!r}, 'w')"],
        env=environment(tmp_path),
    )
    end = time.monotonic() + 20
    while not nsys.verbs and time.monotonic() < end:
        time.sleep(0.02)

    process.terminate()

    assert process.wait(30) == -signal.SIGTERM
    assert not mark.exists()
    assert left(tmp_path) == []
