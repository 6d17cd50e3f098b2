"""Other profilers in the environment or active in the process."""

import pytest

import rlprof
from rlprof_cli.doctor import Finding, findings
from rlprof_cli.doctor._profilers import look_at_environment
from tests.cases import cases
from tests.waiting import python


def test_a_clean_environment_is_ok():
    """An environment without variables of an active profiler is one ok finding."""
    environ = {"LD_PRELOAD": "/lib/libjemalloc.so.2", "KINETO_USE_DAEMON": "0"}
    (found,) = look_at_environment(environ)

    assert found == Finding("ok", "environment", "brings no other profiler")


def test_injections_are_named(tmp_path):
    """An injection library for NVTX or CUDA is a warning, which says if it is missing."""
    name = "NVTX_INJECTION64_PATH"
    (tmp_path / "injection.so").touch()
    there, gone = str(tmp_path / "injection.so"), str(tmp_path / "gone.so")

    (found,) = look_at_environment({name: there})
    (missing,) = look_at_environment({name: gone})

    assert found.level == "warn"
    assert str(found) == (
        f"{name}: is set: {there} is loaded into every process; unset it for this run; two "
        "profilers at once lose data; start the run without it, or leave our tool out"
    )
    assert f"{gone}, which is not there, is loaded" in str(missing)


@cases(
    "name, value, who",
    ("NSYS_PROFILING_SESSION_ID", "17", "Nsight Systems"),
    ("CUDA_LAUNCH_BLOCKING", "1", "the CPU waits for every kernel"),
    ("LD_PRELOAD", "/lib/libjemalloc.so:/opt/nsys/libToolsInjectionProxy64.so", "another"),
)
def test_variables_of_profilers_are_named(name, value, who):
    """A variable that a profiler leaves is a warning that names the variable and its owner."""
    (found,) = look_at_environment({name: value})

    assert (found.level, found.where) == ("warn", name)
    assert who in found.what


@pytest.mark.slow
def test_a_profiler_of_functions_is_named():
    """A function in sys.setprofile is a finding with its own name."""
    code = (
        "import sys\n"
        "def hook(*_): pass\n"
        "sys.setprofile(hook)\n"
        "from rlprof_cli.doctor import findings\n"
        "print(*findings(), sep='\\n')\n"
    )

    done = python("-c", code, check=True)

    assert "process: __main__.hook is called for every function (sys.setprofile); " in done.stdout


@pytest.mark.slow
def test_a_torch_profiler_that_runs_is_named():
    """A running torch profiler is BAD until it stops."""
    import torch

    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]):
        during = [found for found in findings() if found.level == "BAD"]
    after = [found for found in findings() if found.level == "BAD"]

    why = "a torch profiler is running in it, so that no window of torch can open"
    cure = "stop it before rlprof records (two lose both traces)"
    assert [str(found) for found in during] == [f"process: {why}; {cure}"]
    assert after == []


@pytest.mark.slow
def test_our_own_window_is_no_other_profiler(tmp_path):
    """A window of rlprof's own torch tool is no finding."""
    config = {"run_dir": str(tmp_path), "tool": "torch", "steps": [1], "roles": {"actor": {}}}

    with rlprof.open(config) as prof:
        prof.step(1)
        with prof.phase("rollout"):
            during = findings()

    assert [found for found in during if found.level == "BAD"] == []


@pytest.mark.slow
def test_findings_are_cheap_enough_for_training():
    """`findings` imports no back end, starts no process and writes no file."""
    code = (
        "import sys\n"
        "from rlprof_cli.doctor import findings\n"
        "def audit(event, args):\n"
        "    if event.startswith(('subprocess', 'os.posix_spawn', 'os.fork')):\n"
        "        raise SystemExit(event)\n"
        "    if event == 'open' and isinstance(args[1], str) and set(args[1]) & set('wax+'):\n"
        "        raise SystemExit(f'{args}')\n"
        "sys.addaudithook(audit)\n"
        "found = findings()\n"
        "print(len(found), 'torch' in sys.modules, 'yaml' in sys.modules)\n"
    )

    done = python("-B", "-c", code)

    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[1:] == ["False", "False"]
    assert int(done.stdout.split()[0]) >= 5
