"""The launch of an engine that is to be recorded, and options refused before it."""

import json

import pytest

import rlprof
from rlprof import Launch
from rlprof_cli import main
from rlprof_sglang import server_args
from tests.cases import cases

OF = {"vllm": "vLLM's own profiler", "sglang": "SGLang's own profiler"}
ONLY, TWO = "{0} records torch only", ["torch", "torch_memory"]


def launch(engine, tool="torch", **options):
    roles = {"rollout": {"engine": engine, "tool": tool}}
    config = {"steps": [1], "roles": roles, "engines": {engine: options}}
    return rlprof.launch(config, role="rollout")


@cases(
    "engine, allowed, wanted",
    *[(engine, None, None) for engine in OF],
    *[(engine, "lora", "lora,rlprof") for engine in OF],
    *[(engine, "rlprof,lora", None) for engine in OF],
    ("vllm", "", "rlprof"),
    ("sglang", "", None),
)
def test_rlprof_is_added_to_the_list_of_an_engines_plugins(monkeypatch, engine, allowed, wanted):
    """The launch adds rlprof to a list of plugins; an empty list means all plugins for SGLang."""
    name = f"{engine.upper()}_PLUGINS"
    if allowed is not None:
        monkeypatch.setenv(name, allowed)

    assert launch(engine).env.get(name) == wanted


@cases(
    "engine, tool, wanted",
    ("vllm", "nsys", {"VLLM_WORKER_MULTIPROC_METHOD": "spawn"}),
    ("vllm", "torch", {}),
    ("sglang", "torch", {"RLPROF_SGLANG": "1"}),
)
def test_the_environment_is_what_the_tool_needs(engine, tool, wanted):
    """The launch has vLLM spawn its workers under nsys, and switches rlprof on in SGLang."""
    assert launch(engine, tool).env == wanted


@pytest.mark.parametrize(
    ("engine", "requests", "wanted"),
    [("vllm", True, False), ("vllm", False, None), ("sglang", True, True), ("sglang", False, None)],
)
def test_statistics_are_on_only_for_requests(engine, requests, wanted):
    """The launch turns the engine's statistics on only if requests are recorded."""
    name = {"vllm": "disable_log_stats", "sglang": "enable_metrics"}[engine]

    assert launch(engine, requests=requests).engine_args.get(name) is wanted


@cases(
    "engine, options, tool, why",
    ("vllm", {"way": "native"}, "npu", f"way: native: {ONLY}; npu needs way: worker"),
    ("vllm", {"way": "native"}, TWO, f"way: native: {ONLY}; torch_memory needs way: worker"),
    ("sglang", {"native_merge": True}, TWO, f"native_merge: {ONLY}; torch_memory needs way: "),
    ("sglang", {"way": "worker"}, [], "way: worker records with the run's tools, and there is"),
)
def test_a_way_that_does_not_fit_the_tools_is_refused(engine, options, tool, why):
    """`way: native` is refused for tools other than torch, and `way: worker` without a tool."""
    with pytest.raises(rlprof.ConfigError) as raised:
        launch(engine, tool, **options)

    (fault,) = raised.value.faults
    assert fault.startswith(f"config: engines.{engine}: {why.format(OF[engine])}")


@pytest.mark.parametrize("engine", OF)
@cases(
    "way, said",
    ("native", "({} in place of torch)"),
    ("worker", "(inside it: torch)"),
    ("auto", "(inside it: torch; without rlprof in its "),
)
def test_check_says_what_records_in_an_engine(tmp_path, capsys, engine, way, said):
    """`rlprof check` and `rlprof plan` name the tools inside an engine, or its own profiler."""
    file = tmp_path / "profile.yaml"
    roles = f"roles: {{rollout: {{engine: {engine}}}}}\nengines: {{{engine}: {{way: {way}}}}}"
    file.write_text(f"tool: torch\nsteps: [1]\n{roles}\n")

    assert main(["check", str(file)]) == 0
    assert f"engine {engine} {said.format(f'{OF[engine]} records')}" in capsys.readouterr().out
    assert main(["plan", str(file), "--no-estimate"]) == 0
    (row,) = (one for one in capsys.readouterr().out.splitlines() if f"engine {engine} (" in one)
    assert "; " not in row
    assert main(["plan", str(file), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["tools"] == [engine]


def test_the_server_gets_the_same_as_arguments():
    """`server_args` turns engine arguments into flags: switches, plain values and JSON."""
    given = {"enable_metrics": True, "sleep_on_idle": False, "tp_size": 2, "profiler": {"a": True}}

    assert server_args(Launch(engine_args=given)) == [
        "--enable-metrics", "--tp-size", "2", "--profiler", '{"a": true}',
    ]  # fmt: skip
