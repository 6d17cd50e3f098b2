from collections.abc import Mapping
from textwrap import dedent
from typing import Any, ClassVar

import attrs
import pytest

from rlprof import hookimpl, plugins
from rlprof.config import Config, Limits, Role, check_config, load_config, merge_launches
from rlprof.distributions import how_to_install
from rlprof.errors import ConfigError, RlprofError
from rlprof.schedule import parse_steps
from rlprof.types import Launch
from tests.cases import cases
from tests.fakes.engines import Motor
from tests.fakes.tools import Bare

ACTOR: dict[str, Any] = {"tool": "torch", "roles": {"actor": {}}}


def faults_of(config: Any, *, check: bool = False) -> list[str]:
    """Return the faults of *config* without the prefix that all of them share."""
    with pytest.raises(ConfigError) as error:
        (check_config if check else load_config)(config)
    count, lines = len(error.value.faults), str(error.value).splitlines()
    assert lines[:-count] == ([f"config: {count} faults"] if count > 1 else [])
    return [line.strip().removeprefix("config: ") for line in lines[-count:]]


def test_a_config_is_read_into_values():
    """A config takes one tool or several, rank lists, step rules, and sizes as text or numbers."""
    config = load_config({
        "tool": ["torch", "nsys"], "steps": {"every": 100, "first": 2}, "scratch_dir": "none",
        "roles": {
            "actor": {"ranks": [3, 0, 3], "options": {"nsys": {"trace": "cuda"}}},
            "rollout": {"ranks": ["all"], "tool": [], "engine": "vllm"},
        },
        "limits": {"bytes": "1.5KB", "window_s": 60, "stop_timeout_s": 0.5},
    })  # fmt: skip
    sizes = {1: 1, "1000": 1000, "4GB": 4 * 10**9, "4 gb": 4 * 10**9, "512MiB": 512 * 2**20}

    assert config == Config(
        tool=("torch", "nsys"),
        steps=parse_steps({"every": 100, "first": 2}),
        roles={
            "actor": Role(ranks=(0, 3), options={"nsys": {"trace": "cuda"}}),
            "rollout": Role(ranks=None, tool=(), engine="vllm"),
        },
        limits=Limits(bytes=1500, window_s=60.0, stop_timeout_s=0.5),
    )
    for one, size in sizes.items():
        assert load_config({**ACTOR, "limits": {"bytes": one}}).limits.bytes == size


INSTALLED = "installed: counter, npu, nsys, rival, sampler, torch, torch_memory"


def test_all_faults_come_at_once():
    """One check reports all faults of a config, each with its key, and coerces no value."""
    faults = faults_of({
        "stpes": [2],
        "run_dir": "$HOME/runs",
        "scratch_dir": "None",
        "mode": "discret",
        "join_steps": True,
        "strict": 1,
        "roles": {
            "actor": {"ranks": "7", "rnaks": [0], "phases": "none"},
            "critic": {"tool": ["nsys"], "options": {"torch": {}}, "ranks": []},
            "ref": {"tool": ["nsys", "nsys"], "phases": []},
        },
        "tools": {"contents": "cpu"},
        "limits": {"bytes": -1, "windows": 3},
    })  # fmt: skip

    assert faults == [
        "stpes: unknown key; did you mean 'steps'?",
        "run_dir: '~' and '$' are not expanded, got '$HOME/runs'; write the full path",
        "scratch_dir: expected a folder, got 'None'; leave it out for the default",
        "mode: expected one of 'discrete', 'continuous', got 'discret'; did you mean 'discrete'?",
        "strict: expected true or false, got 1",
        "roles.actor.ranks: expected 'all' or a list of ranks like [0, 7], got '7'",
        "roles.actor.rnaks: unknown key; did you mean 'ranks'?",
        "roles.actor.phases: expected a name or a list of names, got 'none'",
        "roles.critic.ranks: names no rank; write 'all', name some, or leave the role out",
        "roles.ref.tool: names 'nsys' twice; leave one out",
        "roles.ref.phases: names nothing; name some, or leave it out for all",
        ("tools.contents: expected keys and values, got 'cpu'; options stand by tool: "
         "{torch: {contents: [cpu]}}"),
        "limits.bytes: expected a size like 4GB, 512MiB or 1000000, got -1",
        "limits.windows: unknown key; did you mean 'window_s'?",
        "roles.actor: has no tool; name one here or for the run: tool: torch",
        "roles.critic.options.torch: this role does not use it (it uses: nsys)",
    ]  # fmt: skip


@cases(
    "changes, fault",
    ({"roles": {}},
     "roles: names no role, so nothing would be recorded; add one, e.g. actor: {}"),
    ({"mode": "continuous", "roles": {"actor": {"phases": "gen"}}},
     ("roles.actor.phases: only discrete mode records by phase; leave it out or set "
      "mode: discrete")),
    ({"roles": {"actor": {"options": {"nsys": {}, "vllm": {}}, "engine": "vllm"}}},
     "roles.actor.options.nsys: this role does not use it (it uses: torch, vllm)"),
    ({"join_steps": True}, "join_steps: needs mode: continuous; discrete windows never span steps"),
    ({"roles": {"ref": {}, "tool": "x"}},
     "roles.tool: expected keys and values, got 'x'; it is a key of a role: indent it below one"),
    ({"tools": {"tocrh": {}}}, "tools.tocrh: no role uses it; did you mean 'torch'?"),
    ({"roles": ["ref"]}, "roles: expected keys and values, got ['ref']; write {ref: {}}"),
)  # fmt: skip
def test_values_are_checked_against_each_other(changes, fault):
    """Values that contradict each other are one fault, which names a way to resolve it."""
    assert faults_of({**ACTOR, **changes}) == [fault]


@cases(
    "changes",
    {"roles": {}, "enabled": False},
    {"roles": {"actor": {"tool": [], "engine": "vllm"}}},
    {"join_steps": True, "mode": "continuous"},
    {"tools": {"nsys": {}}},
)
def test_values_that_go_together_are_no_fault(changes):
    """Off without roles, an engine without tools, joined steps and unused options are valid."""
    assert load_config({**ACTOR, **changes})


def test_the_name_of_a_role_is_a_plain_word():
    """A role's name that cannot name a file is a fault, which prints it on one line."""
    wrong = ["2nd", "../x", "a" * 64, "a\n"]

    assert "ref-policy_2" in load_config({"tool": "t", "roles": {"ref-policy_2": {}}}).roles
    for name in wrong:
        (fault,) = faults_of({"tool": "t", "roles": {name: {}}})
        told = name if name.isprintable() else repr(name)  # a line break would forge a line
        assert fault.startswith(f"roles.{told}: cannot be the name of a role; use up to 63 ")


@pytest.mark.parametrize("word", sorted(Config.ELSEWHERE))
def test_verls_words_are_translated(word):
    """A key of verl's profiler config is a fault that names our key, for the run and in a role."""
    told = f"{word}: unknown key; write {Config.ELSEWHERE[word]}"

    assert faults_of({**ACTOR, word: 1}) == [told]
    if word not in {"ranks", "engine"}:  # a role has these
        assert faults_of({**ACTOR, "roles": {"actor": {word: 1}}}) == [f"roles.actor.{told}"]


@attrs.frozen
class Depth:
    levels: int = 1
    shape: str = "flat"


@attrs.frozen
class SamplerOptions:
    hz: int = 99
    out: str = "x"
    depth: Depth = Depth()
    must_be_odd: int = 1
    events: tuple[str, ...] = ()

    def __attrs_post_init__(self) -> None:
        if self.must_be_odd % 2 == 0:
            raise ValueError("must_be_odd is even")


class Sampler:
    Options = SamplerOptions
    claims: ClassVar = {"timer": "process"}

    @hookimpl
    def configure(self, place, target, options):
        if options.hz > 1000:
            raise RlprofError(f"{target.role}: {options.hz} Hz is too fast; take 1000")
        if options.out == "boom":
            raise KeyError(options.out)
        if options.out == "odd":
            return {"env": {}}
        return Launch(env={"SAMPLER_OUT": options.out}, argv_prefix=("sample",))

    @hookimpl
    def start(self):
        return None


@attrs.frozen
class StrictOptions:
    must: int
    table: Mapping[str, int] = attrs.field(factory=dict)


class Rival:
    claims: ClassVar = {"timer": "process", "gpu": "device"}

    @hookimpl
    def configure(self):
        return Launch(env={"SAMPLER_OUT": "rival"}, argv_prefix=("rival", "-x"))


@pytest.fixture(autouse=True)
def _hand():
    for word, cls in (("sampler", Sampler), ("counter", Bare), ("rival", Rival)):
        plugins.register("tool", word, cls)
    plugins.register("engine", "engine", Motor)


def test_options_of_a_role_override_those_of_the_run():
    """A role's options replace the run's key by key and become the plugin's Options class."""
    config = {
        "tool": "sampler",
        "tools": {"sampler": {"hz": 10, "depth": {"levels": 3, "shape": "deep"}}},
        "roles": {"actor": {"options": {"sampler": {"depth": {"levels": 4}}}}, "critic": {}},
    }

    _, tools = check_config(config)

    (actor,), (critic,) = tools["actor"], tools["critic"]
    assert SamplerOptions(hz=10, depth=Depth(4)) == actor.options
    assert SamplerOptions(hz=10, depth=Depth(3, "deep")) == critic.options
    assert actor.asked == {"hz": 10, "depth": {"levels": 4}}
    assert (actor.name, actor.plugin) == ("sampler", Sampler)
    assert Launch(env={"SAMPLER_OUT": "x"}, argv_prefix=("sample",)) == actor.launch


def test_each_fault_has_its_line(tmp_path):
    """The faults of a YAML file are in file order, each with the line of its key."""
    file = tmp_path / "p.yaml"
    text = """\
        tool: [sampler, missing]
        tools:
          sampler:
            depth:
              levels: no
            events:
              - cycles
              - 7
        roles:
          actor:
            phases:
              - gen
              - 3
          critic: {tool: counter, rnks: [0]}

        strict: 1
    """
    file.write_text(dedent(text))

    with pytest.raises(ConfigError) as error:
        check_config(file)

    assert error.value.faults == (
        f"{file}:1: tool: tool 'missing' is not installed ({INSTALLED})",
        f"{file}:5: tools.sampler.depth.levels: expected a whole number, got False",
        f"{file}:8: tools.sampler.events[1]: expected text, got 7",
        f"{file}:11: roles.actor.phases: expected a name or a list of names, got 3",
        f"{file}:14: roles.critic.rnks: unknown key; did you mean 'ranks'?",
        f"{file}:16: strict: expected true or false, got 1",
    )


@cases(
    "options, fault",
    ({"must_be_odd": 2}, ": must_be_odd is even"),
    ({"hz": 2000}, ": actor: 2000 Hz is too fast; take 1000"),
    ({"out": "boom"}, ": configure raised KeyError: 'boom'"),
    ({"out": "odd"}, ": configure returned {'env': {}}, not a Launch or nothing, at launch"),
)
def test_an_error_of_configure_at_launch_is_a_fault_of_the_options(options, fault):
    """An error or invalid result of configure at launch is a fault at the path of the options."""
    general = {**ACTOR, "tool": "sampler", "tools": {"sampler": options}}
    special = {"tool": "sampler", "roles": {"actor": {"options": {"sampler": options}}}}

    assert [f"tools.sampler{fault}"] == faults_of(general, check=True)
    assert [f"roles.actor.options.sampler{fault}"] == faults_of(special, check=True)


def test_an_option_may_be_required_and_a_key_is_text(monkeypatch):
    """A required option that is missing is a fault, and so is a key that is not text."""
    monkeypatch.setattr(Bare, "Options", StrictOptions, raising=False)

    def told(options):
        config = {**ACTOR, "tool": "counter", "tools": {"counter": options}}
        return [fault.partition(": ")[::2] for fault in faults_of(config, check=True)]

    key = "expected text as key, got 1"
    assert told({"must": 1, "table": {1: 1}}) == [("tools.counter.table.1", key)]
    ((where, missing),) = told({})
    assert where.endswith("counter.must")
    assert missing == "is missing; give it a value"


def test_tools_that_cannot_share_a_process_are_refused(monkeypatch):
    """Two tools of a role with one claim, or two values for one variable, are a fault."""
    roles = {"a": {"tool": "sampler"}, "b": {"tool": "rival"}}
    assert set(check_config({"roles": roles})[1]) == set(roles)
    config = {**ACTOR, "tool": ["sampler", "counter", "rival"], "tools": {"rival": {"x": 1}}}

    both = "tools 'sampler' and 'rival' both need timer (one per process)"
    assert faults_of(config, check=True) == [
        f"roles.actor: {both}; give them to different runs or roles",
        "tools.rival.x: unknown key; there are: none",
    ]
    monkeypatch.setattr(Rival, "claims", {})
    env = "'sampler' and 'rival' want env 'SAMPLER_OUT' to be 'x' and 'rival'"
    assert faults_of({**ACTOR, "tool": ["sampler", "rival"]}, check=True) == [
        f"roles.actor: {env}; use one of them"
    ]


def test_an_unknown_tool_of_the_run_is_one_fault():
    """An unknown tool of the run is one fault for all roles; a role's own is that role's."""
    roles = {"a": {}, "b": {}, "c": {"tool": "smapler"}}
    message = f"tool 'smapler' is not installed; did you mean 'sampler'? ({INSTALLED})"

    assert [f"tool: {message}", f"roles.c.tool: {message}"] == faults_of(
        {"tool": "smapler", "roles": roles}, check=True
    )


@cases(
    "place, name, fault",
    ("tools", "engine", "is no tool; put it under engines"),
    ("engines", "sampler", "is no engine; put it under tools"),
    ("tools", "counter", None),
)
def test_options_under_the_wrong_kind_of_plugin_are_a_fault(place, name, fault):
    """Engine options under `tools`, or the reverse, are a fault; those of unused tools are not."""
    roles = {"rollout": {"tool": "sampler", "engine": "engine"}}
    given = {"roles": roles, "strict": 1, place: {name: {"way": "worker"}}}

    found = faults_of(given, check=True)

    told = [] if fault is None else [f"{place}.{name}: {fault}"]
    assert ["strict: expected true or false, got 1", *told] == found


def test_launches_are_merged():
    """The launches of several tools merge; their command prefixes follow one another."""
    launches = {
        "a": Launch(env={"A": "1"}, argv_prefix=("a",), engine_args={"x": 1}),
        "b": Launch(env={"A": "1", "B": "2"}, argv_prefix=("b", "-v"), runtime_env={"r": [1]}),
    }

    assert Launch(
        env={"A": "1", "B": "2"},
        argv_prefix=("a", "b", "-v"),
        engine_args={"x": 1},
        runtime_env={"r": [1]},
    ) == merge_launches(launches)
    assert Launch() == merge_launches({})


def test_a_url_as_run_dir_needs_rlprof_bucket(monkeypatch):
    """A URL as `run_dir` is a fault that names rlprof-bucket where it is not installed."""
    monkeypatch.setattr(plugins, "entries", lambda _: [])

    (fault,) = faults_of({"run_dir": "s3://bucket/runs", "tool": "none"}, check=True)

    assert fault.startswith("run_dir: ")
    assert how_to_install("rlprof-bucket") in fault
