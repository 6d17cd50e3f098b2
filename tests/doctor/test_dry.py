"""Dry windows: what a tool records, and what it does to its process."""

import os
import sys

import pytest

from rlprof.config import Config
from rlprof_cli.doctor import _child, examine
from rlprof_cli.doctor._dry import try_tool
from rlprof_cli.doctor._report import Use
from tests.cases import cases
from tests.doctor.running import doctor, install_tool
from tests.waiting import processes

pytestmark = pytest.mark.slow


@pytest.fixture(name="tried")
def _tried(module, tmp_path):
    """Return a function that tries a tool and returns its findings as lines."""

    def try_it(asked, *, tool="mad", roles=("actor",), timeout_s=60.0, limits=None):
        config = Config(scratch_dir=str(tmp_path / "scratch"), **(limits or {}))
        use = Use(tool, asked, roles)
        found = try_tool(use, config, timeout_s=timeout_s, progress=lambda _: None)
        assert not (tmp_path / "scratch").exists()  # nothing is left there in any case
        return [f"{one.level} {one}" for one in found]

    return try_it


def test_a_tool_that_works_is_ok_with_its_events_and_times(tried, module):
    """A whole window is ok with its events, files and hook times; doctor imports no plugin."""
    (line,) = tried({})

    assert module not in sys.modules
    assert line.startswith("ok tool mad of actor: recorded 7 events, 1 file, 0.0 kB; configure ")
    assert [word for word in line.split() if word in ("start", "stop", "export")]


@cases(
    "tool, goes, said",
    ("mad", "launch:segfault", "crashed with SIGSEGV"),
    ("mad", "process:segfault", ", in its configure; training would have, too: leave it out"),
    ("anywhere", "start:segfault", ", in its start; training would have, too: leave it out"),
    ("mad", "stop:exit", "its dry window ended with 3: "),
    ("mad", "export:raise", "ValueError: export went wrong"),
)
def test_a_hook_that_fails_is_a_finding_with_its_place(tried, tool, goes, said):
    """A crash, exit or exception in a hook is a finding that names the hook and the line."""
    lines = tried({"goes": goes}, tool=tool)

    assert not any(line.startswith("ok ") for line in lines)
    assert said in "\n".join(lines)
    if "segfault" in goes:
        assert "SIGSEGV in misbehave (" in lines[0]
        assert "/rlprof_mad.py:" in lines[0]


HANGS = "its dry window did not return within 4 s"


@cases(
    "goes, said, where",
    *(
        (one, f"{HANGS} in misbehave (", "), in its start; ")
        for one in ("start:hang", "start:hold")
    ),
    ("export:hang", "failed: ", "export"),
)
def test_a_hang_is_a_finding_and_leaves_no_process_behind(tried, tmp_path, goes, said, where):
    """A hook that hangs, with the GIL or without, is a finding with its line and is killed."""
    line, *more = tried({"goes": goes}, timeout_s=6 if goes == "export:hang" else 4)

    assert line.startswith(f"BAD tool mad of actor: {said}")
    assert where in line
    assert goes == "export:hang" or ("rlprof_mad.py:" in line and not more)
    assert processes(str(tmp_path), env=os.environ["PYTEST_CURRENT_TEST"]) == []


def test_a_tool_with_a_thread_of_its_own_is_given_up_by_its_limit(tried):
    """A tool with its own thread that hangs is given up after its limit and is BAD."""
    from rlprof.config import Limits

    lines = tried(
        {"goes": "start:hang"}, tool="anywhere", roles=(),
        limits={"limits": Limits(start_timeout_s=0.5)},
    )  # fmt: skip

    assert lines[0].startswith("BAD tool anywhere: failed: ")
    assert "start was not answered within start_timeout_s 0.5" in lines[0]


def test_a_refusal_is_bad_if_the_config_names_the_tool(tried, monkeypatch):
    """A tool's refusal is BAD if a role uses it, otherwise a warning; so is a failing sample."""
    monkeypatch.setenv("SAMPLE", "sample:raise")

    asked = tried({"goes": "start:refuse"})
    installed = tried({"goes": "start:refuse"}, roles=())
    refused = tried({"goes": "start:refuse"}, tool="sampled")
    recorded, sample = tried({}, tool="sampled")

    words = "tool: start has no such device; use another"
    assert asked == [f"BAD tool mad of actor: failed: start: {words}"]
    assert installed == [f"warn tool mad: failed: start: {words}"]
    assert len(refused) == 1
    assert recorded.startswith("ok tool sampled of actor: recorded 7 events")
    assert sample == (
        "warn tool sampled of actor: its sample raised ValueError: sample went wrong; "
        "no cost can be estimated; repair it"
    )


def test_an_unsupported_option_is_bad_if_the_config_sets_it(tried):
    """An unsupported option is BAD if the config sets it, and a warning by default."""
    lines = tried({"goes": "unsupported", "level": 2})

    cure = "remove it from the options, or run where it is available"
    assert lines[0].startswith("ok tool mad of actor: recorded")
    assert lines[1:] == [
        f"BAD tool mad of actor: level: there is one level here; {cure}",
        "warn tool mad of actor: colour: it is grey here",
    ]


def test_the_child_starts_as_the_tool_asks(tried, monkeypatch):
    """The child starts with the environment and command prefix that configure returns."""
    seen = []
    ask = _child.ask
    monkeypatch.setattr(
        "rlprof_cli.doctor._dry.ask", lambda *a, **k: seen.append(k) or ask(*a, **k)
    )

    (line,) = tried({"prefix": ["env", "MORE=1"]})
    (missing,) = tried({"prefix": ["no-such-command"]})

    assert line.startswith("ok ")
    assert (seen[1]["env"]["BORN_WITH"], seen[1]["prefix"]) == ("it", ["env", "MORE=1"])
    assert missing.startswith(
        "BAD tool mad of actor: its dry window could not be started: No such file or directory: "
        "no-such-command"
    )


def test_a_tool_that_hangs_when_imported_is_a_finding(tried, tmp_path, monkeypatch):
    """A tool whose import hangs is a finding, because a child imports it."""
    install_tool(
        monkeypatch, tmp_path / "two", name="rlprof-sleepy", text="import time; time.sleep(600)\n",
        offers="[rlprof.tools]\nsleepy = {module}:Tool\n",
    )  # fmt: skip

    (line,) = tried({}, tool="sleepy", timeout_s=4)

    assert line.startswith(
        "BAD tool sleepy of actor: importing it, or its configure at launch, did"
    )
    assert "rlprof_sleepy.py:1" in line


ENGINES = """
from rlprof import Advice, hookimpl
class Alone:
    @hookimpl
    def start(self): ...
class Hive(Alone):
    drives = True
    @hookimpl
    def advise(self, options, tools, on_host):
        comb = f"is too small for {', '.join(tools)}; take another"
        found = [Advice(comb, level="fault"), Advice("old", "wax", "warning")]
        return found if on_host and options is not None else []
"""


@pytest.mark.parametrize(("engine", "tried"), [("hive", True), ("alone", False)])
def test_tools_that_record_inside_an_engine_are_tried(
    profile, monkeypatch, tmp_path, engine, tried
):
    """Tools that an engine drives are tried, and its advice is a finding; others are not."""
    install_tool(
        monkeypatch, tmp_path / "two", name="acme-engines", text=ENGINES,
        offers="[rlprof.engines]\nhive = {module}:Hive\nalone = {module}:Alone\n",
    )  # fmt: skip
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path / 'site'}:{tmp_path / 'two'}")
    tools = {"mad": {"goes": "start:refuse"}}

    told = doctor(profile(roles={"rollout": {"engine": engine}}, tools=tools))

    why = "tool mad of rollout: failed: start: tool: start has no such device; use another"
    comb = "roles.rollout: engine hive: is too small for mad; take another"
    assert ([comb, why] if tried else []) == told["BAD"], told.text
    assert ("roles.rollout: engine hive, wax: old" in told["warn"]) is tried
    assert int(tried) == told.code


def test_every_fault_of_a_config_is_bad(profile):
    """Every fault of a config is BAD with its line, and valid tools are still tried."""
    roles = {"actor": {"tool": ["mad", "mda"]}, "critic": {"options": {"mad": {"levle": 1}}}}

    told = doctor(profile(roles=roles))

    assert told.code == 1
    assert any("tool 'mda' is not installed; did you mean 'mad'?" in line for line in told["BAD"])
    assert any("levle: unknown key; did you mean 'level'?" in line for line in told["BAD"])
    assert any(line.startswith("tool mad of actor: recorded") for line in told["ok"])
    assert told.text.splitlines()[-1].startswith("not everything will work here: ")
    assert told.errors == ""


def test_no_tool_is_tried_if_the_config_is_off_or_unreadable(profile, tmp_path):
    """No tool is tried if the config is off or unreadable; folders and Python still are."""
    waited, file = [], profile(enabled=False)

    found = list(examine(file, progress=waited.append))
    told = doctor(tmp_path / "none.yaml")

    assert {one.level for one in found} <= {"ok", "warn"}
    assert f"{file}: is off (enabled: false)" in map(str, found)
    assert not any("mad" in str(one) for one in found)
    assert "trying the folders" in waited
    assert told.code == 1
    assert told["BAD"] == [f"{tmp_path}/none.yaml: no such file; give the path of a YAML file"]
    assert any(line.startswith("python: ") for line in told["ok"])


def test_only_named_roles_are_tried_and_oddities_are_warnings(profile):
    """With --role, only that role is tried; file limit, injection and unknown role are warnings."""
    roles = {"actor": {}, "critic": {"options": {"mad": {"goes": "start:segfault"}}}}
    file = profile(roles=roles)
    few = ["sh", "-c", 'ulimit -n 200; exec "$@"', "sh"]
    injected = {"NVTX_INJECTION64_PATH": "/opt/nsys/libToolsInjection64.so"}

    told = doctor(file, "--role", "actor", "--role", "nobody", wrap=few, env=injected)

    assert told.code == 0, told.text
    assert any(line.startswith("tool mad of actor: recorded 7 events") for line in told["ok"])
    assert not [line for line in told.text.splitlines() if "critic" in line and "tool" in line]
    files = "this process may open only 200 files; ulimit -n 1024 or more, before the run"
    assert f"ulimit -n: {files}" in told["warn"]
    there = "has no role 'nobody' (there: actor, critic); it writes spans only"
    assert f"{file}: {there}" in told["warn"]
    said = "NVTX_INJECTION64_PATH: is set: /opt/nsys/libTools"
    assert any(line.startswith(said) for line in told["warn"])
