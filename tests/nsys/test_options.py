"""Options of the tool `nsys`, and the prefix that starts a process under nsys."""

import pytest

import rlprof
from rlprof import ConfigError
from rlprof.config import Limits, check_config
from rlprof_nsys import Nsys
from rlprof_nsys._arguments import DOMAIN, LAUNCHER, RANGE, Asked
from tests.cases import cases
from tests.nsys.conftest import options


def config(**asked):
    return {"tool": "nsys", "steps": [1], "roles": {"actor": {"ranks": "all"}},
            "tools": {"nsys": asked}}  # fmt: skip


def faults(**asked):
    """Return the faults of a config, each by its path."""
    with pytest.raises(ConfigError) as error:
        check_config(config(**asked))
    return dict(fault.split(": ", 2)[1:] for fault in error.value.faults)


def test_advice_names_what_a_report_exposes_and_needs():
    """Advice warns of environment variables in reports and names the oldest nsys."""
    said, release = (one.text for one in Nsys.advise(options(), Limits()))

    assert said.startswith("a report holds environment variables of all processes that nsys can")
    assert "Nsight Systems 2023.4 or newer" in release
    assert Nsys.claims == {"nsys": "process", "cupti": "process"}


@cases(
    "asked, why",
    # the program is not in nsys' process tree, and a range that is not traced is not seen
    ({"options": {"sample": "cpu"}}, "options.sample: nsys samples only processes"),
    ({"mode": "range", "range": "nvtx", "trace": ["osrt"]}, "range: nvtx needs nvtx in trace"),
    ({"mode": "attached", "env": ["A"]}, "env: has no effect in mode attached"),
)
def test_options_that_record_nothing_are_refused_before_the_run(asked, why):
    """Options with which nsys would record nothing are refused with the reason."""
    with pytest.raises(ConfigError, match=why):
        check_config(config(**asked))


def test_nsys_is_given_less_time_than_core_waits():
    """Timeouts of nsys that are not below core's are faults with both numbers."""
    assert faults(start_s=5, stop_s=200) == {
        "tools.nsys.start_s": "must be less than limits.start_timeout_s, 5; got 5",
        "tools.nsys.stop_s": "must be less than limits.stop_timeout_s, 120; got 200",
    }


def test_every_fault_has_the_path_of_its_option():
    """All faults of a config are reported at once, each with the path of its option."""
    told = faults(
        mode="discrete", trace=["nvtx", "cudda"], range="steps", start_s=0,
        options={"output": "x", "--sample": "cpu", "mpi-impl": []},
    )  # fmt: skip

    assert {path: told[path].partition(",")[0][:40] for path in told} == {
        "tools.nsys.mode": "expected one of 'session'",
        "tools.nsys.trace": "expected some of cublas",
        "tools.nsys.range": "expected one of 'cudaProfilerApi'",
        "tools.nsys.options": "'output' is set by rlprof; '--sample' is",
        "tools.nsys.start_s": "expected a number above 0",
    }
    assert told["tools.nsys.trace"].endswith("got 'cudda'; did you mean 'cuda'?")
    assert "'mpi-impl' needs text, a number, true or false" in told["tools.nsys.options"]


def test_the_launcher_stands_before_the_command():
    """The launch prefix is the launcher and one argument; mode `attached` needs no prefix."""
    asked = {"mpi-impl": "a b", "stack": True}
    given = config(options=asked, env=["RAY_*"], trace="nvtx"), config(mode="attached")

    launch, attached = (rlprof.launch(one, role="actor", rank=3) for one in given)

    *command, said = launch.argv_prefix
    assert tuple(command) == LAUNCHER
    assert Asked.read(said) == Asked(
        "actor-3", trace=("nvtx",), options={**asked, "stack": "true"}, env=("RAY_*",)
    )
    assert attached.argv_prefix == ()


NVTX = {"mode": "range", "range": "nvtx"}


@pytest.mark.parametrize(
    ("asked", "has_window"),
    [(NVTX, True), ({"mode": "range"}, False), ({"range": "nvtx", "trace": ["osrt"]}, False),
     ({"mode": "range", "trace": ["osrt"]}, False)],
)  # fmt: skip
def test_nsys_waits_for_a_range_only_where_that_is_asked(asked, has_window):
    """The launch names rlprof's range only with `mode: range` and `range: nvtx`."""
    said = rlprof.launch(config(**asked), role="actor").argv_prefix[-1]

    assert Asked.read(said).window == (f"{RANGE}@{DOMAIN}" if has_window else "")
