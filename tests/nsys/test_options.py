"""What a config may say, and what a process must be born with."""

from __future__ import annotations

import pytest

import rlprof
from rlprof import ConfigError
from rlprof.config import Limits, check_config
from rlprof_nsys import Nsys
from rlprof_nsys._arguments import LAUNCHER, Asked
from tests.nsys.conftest import options


def config(**asked):
    return {
        "tool": "nsys",
        "steps": [1],
        "roles": {"actor": {"ranks": "all"}},
        "tools": {"nsys": asked},
    }


def launched(**asked):
    return rlprof.launch(config(**asked), role="actor", rank=3)


def test_what_a_report_gives_away_is_said_beforehand():
    """That it holds environments, and the oldest release."""
    said, release = (one.text for one in Nsys.advise(options(), Limits()))

    assert said.startswith("a report holds environment variables of all processes that nsys can")
    assert release.startswith("the training hosts need Nsight Systems 2023.4 or newer")


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ({"options": {"sample": "cpu"}}, "options.sample: nsys samples only processes"),
        ({"mode": "range", "range": "nvtx", "trace": ["osrt"]}, "range: nvtx needs nvtx in trace"),
    ],
    ids=["sample", "range"],
)
def test_what_could_record_nothing_is_refused_before_the_run(asked, why):
    """The program is not in nsys' process tree, and a range that is not traced is not seen."""
    with pytest.raises(ConfigError, match=why):
        check_config(config(**asked))


def test_nsys_is_given_less_time_than_core_waits():
    """Else core would give a window up which nsys is still writing."""
    with pytest.raises(ConfigError) as error:
        check_config(config(start_s=5, stop_s=200))

    assert [fault.partition(": ")[2] for fault in error.value.faults] == [
        "tools.nsys.start_s: must be less than limits.start_timeout_s, 5; got 5",
        "tools.nsys.stop_s: must be less than limits.stop_timeout_s, 120; got 200",
    ]


def test_every_fault_is_told_by_its_path():
    """All that is wrong is told at once, each under its option."""
    asked = {
        "mode": "discrete",
        "trace": ["nvtx", "cudda"],
        "range": "steps",
        "options": {"output": "x", "--sample": "cpu", "mpi-impl": []},
        "env": ["A B"],
        "nsys": "",
        "start_s": 0,
    }

    with pytest.raises(ConfigError) as error:
        check_config(config(**asked))

    told = dict(fault.split(": ", 2)[1:] for fault in error.value.faults)
    assert {path: told[path].partition(",")[0][:40] for path in told} == {
        "tools.nsys.mode": "expected one of 'session'",
        "tools.nsys.trace": "expected some of cublas",
        "tools.nsys.range": "expected one of 'cudaProfilerApi'",
        "tools.nsys.options": "'output' is set by rlprof; '--sample' is",
        "tools.nsys.env": "expected variable names",
        "tools.nsys.nsys": "expected the path of the program",
        "tools.nsys.start_s": "expected a number above 0",
    }
    assert told["tools.nsys.trace"].endswith("got 'cudda'; did you mean 'cuda'?")
    assert told["tools.nsys.options"] == (
        "'output' is set by rlprof; '--sample' is not an option name; write the long name without "
        "dashes; 'mpi-impl' needs text, a number, true or false"
    )


def test_what_is_traced_may_be_written_as_nsys_has_it():
    """A list, or the text that `nsys --trace` takes."""
    assert options(trace="cuda, nvtx").trace == ("cuda", "nvtx")
    assert options(trace=["cuda", "nvtx"]).trace == ("cuda", "nvtx")


def test_the_launcher_stands_before_the_command():
    """The prefix has one argument, which says all that is asked; no shell reads it."""
    launch = launched(options={"mpi-impl": "a b"}, env=["RAY_*"], trace="nvtx")

    *command, said = launch.argv_prefix
    assert tuple(command) == LAUNCHER
    assert Asked.read(said) == Asked(
        "actor-3", trace=("nvtx",), options={"mpi-impl": "a b"}, env=("RAY_*",)
    )


def test_who_attaches_starts_the_process_himself():
    """Attached mode asks for nothing at launch, and takes no list of variables."""
    assert launched(mode="attached").argv_prefix == ()

    with pytest.raises(ConfigError, match="env: has no effect in mode attached"):
        check_config(config(mode="attached", env=["A"]))


def test_it_is_not_asked_for_together_with_another_reader_of_cupti():
    """Both torch and nsys trace CUDA by CUPTI, of which a process has one."""
    assert Nsys.claims == {"nsys": "process", "cupti": "process"}
