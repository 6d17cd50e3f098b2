"""The launcher on a stand-in for nsys: the program's environment, and how both end."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from rlprof_nsys._arguments import LAUNCHER, MARK, Asked, read_mark
from tests.cases import cases
from tests.waiting import processes, wait_until

pytestmark = pytest.mark.slow

TELL = """
import json, os, sys
print(json.dumps({"env": dict(os.environ), "pid": os.getpid(), "argv": sys.argv[1:],
                  "cwd": os.getcwd(), "in": sys.stdin.read(), "parent": os.getppid()}))
"""
WAIT = """
import os, signal, subprocess, sys, time
def told(number, _):
    os.write(1, f"told {number}\\n".encode())  # a print could be under way
    sys.exit(5)
signal.signal(signal.SIGTERM, told)
print(os.getpid(), flush=True)
time.sleep(60)
"""
GROUP = """
import subprocess, sys, time
children = [subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) for _ in "abc"]
print(*(child.pid for child in children), flush=True)
time.sleep(60)
"""


@pytest.fixture(name="env")
def _env(tmp_path):
    """An environment outside nsys; after the test no process and no file may remain."""
    temp = tmp_path / "tmp"
    temp.mkdir()
    env = {name: value for name, value in os.environ.items() if "NSYS" not in name}
    yield {**env, "TMPDIR": str(temp)}
    wait_until(lambda: not [*temp.iterdir(), *processes(env=f"TMPDIR={temp}")])


def command(nsys, **more):
    return [*LAUNCHER, Asked("actor-0", getattr(nsys, "path", nsys), ("nvtx",), **more).text()]


def launched(env, nsys, *program, code=0, more=None, cwd=None):
    done = subprocess.run(
        [*command(nsys, **(more or {})), *program],
        env=env, cwd=cwd, input="words\n", capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == code, done.stderr
    return done


def told(env, nsys, *arguments, **more):
    """Return what a program reports of itself."""
    done = launched(env, nsys, sys.executable, "-c", TELL, *arguments, **more)
    return json.loads(done.stdout), done.stderr


def begun(env, nsys, program):
    return subprocess.Popen(
        [*command(nsys), sys.executable, "-c", program],
        env=env, stdout=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip


def test_a_program_starts_as_alone_and_knows_its_session(nsys, env):
    """A program's arguments, input and environment are as without nsys, but for its session."""
    options = {"cuda-graph-trace": "node", "sample": "cpu"}

    said, _ = told(env, nsys, "a b", "--", "$HOME", more={"options": options})

    assert said["argv"] == ["a b", "--", "$HOME"]
    assert (said["in"], said["cwd"]) == ("words\n", str(Path.cwd()))
    changed = {name for name in {*env, *said["env"]} if env.get(name) != said["env"].get(name)}
    assert changed == {MARK, "NSYS_PROFILING_SESSION_ID"}
    assert said["parent"] == os.getpid()
    mark = read_mark(said["env"])
    assert mark.session == f"rlprof-actor-0-{said['pid']}"
    assert (mark.nsys, mark.trace) == (nsys.path, "nvtx")
    assert str(Path(mark.folder).parent) == env["TMPDIR"]
    (launch,) = [call for call in nsys.calls if call[0] == "launch"]
    assert set(launch[1:5]) == {
        f"--session-new={mark.session}", "--cuda-graph-trace=node", "--trace=nvtx",
        "--wait=primary",
    }  # fmt: skip


@cases(
    "program",
    [sys.executable, "-c", "import sys; sys.exit(7)"],
    [sys.executable, "-c", "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)"],
    # no signal is ignored: a program other than Python ends at a closed pipe
    ["grep", "SigIgn", "/proc/self/status"],
    ["sh", "-c", "exec /no/such/program"],
)
def test_a_program_runs_and_ends_as_alone(nsys, env, program):
    """A program has the same output and exit status, or signal, under the launcher."""
    alone = subprocess.run(program, capture_output=True, text=True, check=False)

    for one in (nsys, "/no/nsys"):
        command = ["/no/such/program"] if program[0] == "sh" else program
        done = launched(env, one, *command, code=alone.returncode)
        assert done.stdout == alone.stdout
        assert ("/no/such/program: No such file" in done.stderr) == (program[0] == "sh")


def test_a_signal_reaches_the_program_once(nsys, env):
    """The program gets SIGTERM once, and the launcher ends with the program's status."""
    process = begun(env, nsys, WAIT)
    process.stdout.readline()

    process.terminate()
    said = process.communicate(timeout=30)[0]

    assert (said, process.returncode) == ("told 15\n", 5)


# failures.md: nsys-killed
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_signal_to_the_group_ends_all_of_it(nsys, env, number):
    """A signal to the process group ends the launcher, the program and its children."""
    process = begun(env, nsys, GROUP)
    children = [Path("/proc", pid) for pid in process.stdout.readline().split()]

    os.killpg(process.pid, number)

    assert process.wait(30) == -number
    wait_until(lambda: not any(one.exists() for one in children))
    process.stdout.close()


# failures.md: nsys-unusable, nsys-launch
@cases(
    "fault, why",
    ({"launch": "fail"}, "{nsys} launch: Agent lost"),
    ({"version": "2023.3.1.92-1"}, "{nsys} is Nsight Systems 2023.3.1.92-1, and rlprof needs"),
    ("missing", "there is no program '{nsys}'; install Nsight Systems, or set nsys: PATH"),
    ("wrapped", "the process is already in nsys session 12"),
)
def test_without_a_usable_nsys_the_program_runs_unprofiled(nsys, env, fault, why):
    """Without a usable nsys the program runs; stderr and the program's mark have the reason."""
    path = nsys.path
    if fault == "missing":
        path = "/no/nsys"
    elif fault == "wrapped":
        env["NSYS_PROFILING_SESSION_ID"] = "12"
    else:
        nsys.goes_wrong(**fault)

    said, errors = told(env, path)

    found = read_mark(said["env"]).why
    assert found.startswith(why.format(nsys=path))
    assert errors == f"rlprof-nsys: {found}; the program runs unprofiled\n"


# failures.md: nsys-launch
def test_a_launch_that_ends_at_once_is_tried_again(nsys, env):
    """A launch that fails at once is tried again, each time with a new session."""
    nsys.goes_wrong(launch="fail twice")

    said, errors = told(env, nsys)

    sessions = [call[1] for call in nsys.calls if call[0] == "launch"]
    assert len(sessions) == len(set(sessions)) == 3
    assert sessions[-1] == f"--session-new={read_mark(said['env']).session}"
    assert errors == ""


# failures.md: nsys-unusable
def test_an_nsys_that_hangs_is_given_up(nsys, env):
    """An nsys that hangs at the launch is ended, and the program runs unprofiled, once."""
    nsys.goes_wrong(launch="hang")
    script = (
        "import sys; from rlprof_nsys import _launch, launcher; _launch.START_S = 0.5;"
        "launcher.main(sys.argv[1:])"
    )
    program = [sys.executable, "-c", "print('ran')"]

    done = subprocess.run(
        [sys.executable, "-c", script, *command(nsys)[3:], *program],
        env=env, capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip

    assert done.stdout == "ran\n"
    assert "it did not answer within 0.5 s; the program runs unprofiled" in done.stderr


# failures.md: nsys-quiet
def test_files_of_the_folder_it_is_started_in_are_not_its_modules(nsys, env, tmp_path):
    """The launcher imports no module from the folder that it is started in."""
    project = tmp_path / "project"
    (project / "rlprof_nsys").mkdir(parents=True)
    for name in ("json", "select", "tempfile", "attrs", "rlprof_nsys/__init__"):
        (project / f"{name}.py").write_text(f"raise SystemExit('{name} of the user was run')")

    done = launched(env, nsys, sys.executable, "-I", "-c", TELL, cwd=project)

    assert done.stderr == ""
    assert read_mark(json.loads(done.stdout)["env"]).why == ""


def test_the_program_gets_only_the_allowed_variables(nsys, env):
    """With `env` the program gets the allowed variables and those that all programs need."""
    env |= {"MY_KEY": "secret", "RAY_JOB": "1", "RANK": "0"}

    said, _ = told(env, nsys, more={"env": ("RAY_*",)})

    assert "secret" not in json.dumps(said["env"])
    assert "RANK" not in said["env"]
    assert (said["env"]["RAY_JOB"], said["env"]["PATH"]) == ("1", env["PATH"])


def test_a_signal_before_the_program_is_there_ends_the_launcher(nsys, env, tmp_path):
    """SIGTERM during the launch ends the launcher, and no program starts."""
    nsys.goes_wrong(launch="hang")
    process = begun(env, nsys, f"open({str(tmp_path / 'ran')!r}, 'w')")
    wait_until(lambda: nsys.verbs, "a call of nsys")

    process.terminate()

    assert process.wait(30) == -signal.SIGTERM
    assert not (tmp_path / "ran").exists()
    process.stdout.close()
