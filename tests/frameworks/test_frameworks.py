"""The frameworks have what `rlprof attach` and the recipes use of them."""

import contextlib
import re
import sys
import types
from pathlib import Path
from types import SimpleNamespace

import attrs
import pytest

import rlprof
from rlprof.errors import ConfigError, RlprofError
from rlprof_ray.attaching import found
from rlprof_ray.attaching.frameworks import KINDS, kind_of
from rlprof_ray.attaching.look import Look, question
from rlprof_trl import RlprofCallback
from tests.cases import cases
from tests.frameworks import signatures

SAID = {key.partition("@")[0]: said for key, said in signatures.kept().items()}
ACTORS = [
    (framework, name, role)
    for framework, classes in signatures.ACTORS.items()
    for name, (_, role) in classes.items()
]


@pytest.mark.parametrize(("framework", "name", "role"), ACTORS)
def test_an_actor_of_a_framework_has_its_role_and_engine(framework, name, role):
    """An actor's class gives its role, and it has the engine and the last method of a step."""
    kind, said = kind_of(name, ""), SAID[framework][name]

    assert (kind.framework, kind.role) == (framework, role)
    if kind.ends_step:
        assert any(re.fullmatch(kind.ends_step, one) for one in said["methods"])
    way, _, method = kind.engine.partition(":")
    if way == "url":
        assert method in said["methods"]
    elif way:
        assert way in said["attributes"]


def test_a_part_of_a_step_does_not_end_it():
    """A micro-batch of NeMo-RL does not end a step; a later call does."""
    kind = kind_of("DTensorPolicyWorkerV2", "")
    methods = SAID["NeMo-RL"]["DTensorPolicyWorkerV2"]["methods"]

    ends = {one for one in methods if re.fullmatch(kind.ends_step, one)}
    assert ends == {"train", "train_presharded", "finish_train_step_presharded"}
    assert "train_microbatch_presharded" in methods


def test_every_kind_matches_a_class_of_its_framework():
    """Every kind of actor matches a class of its framework."""
    names = [name for _, name, _ in ACTORS]

    unread = {
        kind.pattern
        for kind in KINDS
        if kind.framework != "verl" and not any(kind.matches(name, "") for name in names)
    }
    assert unread == set()


def test_the_functions_that_recipes_wrap_exist():
    """AReaL's scope takes `name` first and `args`, and slime's loop is train(args)."""
    scope = SAID["AReaL"]["areal/utils/perf_tracer.py"]["trace_scope"]

    assert scope[0] == "name"
    assert "args" in scope
    assert SAID["slime"]["train.py"]["train"] == ["args"]


# Engines behind actors are reached at the address that the actor gives


URL = "http://10.0.0.1:8000"


class Server:
    """Gives its address: as text like slime's, or in an answer like SkyRL's."""

    def get_url(self):
        return URL

    def get_server_info(self):
        return SimpleNamespace(ip="10.0.0.1", port=8000, url=URL)


@pytest.fixture(name="member")
def _member(monkeypatch):
    """Return a function that makes a member of a class, with plugins where it runs."""
    core = SimpleNamespace(
        current_actor_is_asyncio=lambda: True, current_actor_max_concurrency=lambda: 1
    )
    monkeypatch.setattr("ray._private.worker.global_worker.core_worker", core, raising=False)

    def member(name, *plugins):
        kind = kind_of(name, "")
        answer = question()(Server(), kind.engine, kind.version)
        look = Look(**{**answer, "plugins": plugins})
        return found._member(SimpleNamespace(), kind, SimpleNamespace(), look, "")

    return member


@cases("name, engine", ("VLLMServerActor", "vllm"), ("SGLangEngine", "sglang"))
def test_a_server_is_recorded_at_its_address(member, name, engine):
    """A server is recorded at its address; vLLM's needs its plugin, which is named if missing."""
    one, bare = member(name, "vllm"), member(name)

    assert (one.role, one.engine, one.problem) == ("rollout", engine, "")
    assert (one.replica.handle, one.replica.via) == (URL, "url")
    assert ("rlprof-vllm" in bare.problem, bool(bare.problem)) == (engine == "vllm",) * 2


@pytest.mark.parametrize("has_pip", [True, False])
def test_a_worker_without_rlprof_is_an_error_with_its_installer(member, has_pip):
    """A worker without rlprof is an error with a pip command, or a uv one without pip."""
    one = member("FSDPPolicyWorkerBase")
    one = attrs.evolve(one, look=attrs.evolve(one.look, has_pip=has_pip))

    with pytest.raises(RlprofError) as raised:
        found.check([one], ["torch"])

    how = f"{sys.executable} -m pip install" if has_pip else f"--python {sys.executable} rlprof-ray"
    assert how in str(raised.value)


# Frameworks that call rlprof: the ten lines of docs/areal.md, and TRL's callback


PAGE = (Path(__file__).parent.parent.parent / "docs/areal.md").read_text(encoding="utf-8")
RECIPE = re.search(r"```\n(import contextlib.*?)```", PAGE, re.DOTALL)[1]
CONFIG = re.search(r"```yaml\n(.*?)```", PAGE, re.DOTALL)[1]


def test_scopes_of_the_loop_become_steps_and_phases(tmp_path, monkeypatch):
    """AReaL's training scopes become steps and phases with its numbers; other scopes do not."""
    heard = []

    @contextlib.contextmanager
    def trace_scope(name, *, category=None, enable_profiler=False, profiler_args=None, args=None):
        heard.append((name, args))
        yield

    tracer = types.ModuleType("areal.utils.perf_tracer")
    tracer.trace_scope = trace_scope
    utils = types.ModuleType("areal.utils")
    utils.perf_tracer = tracer
    for name, module in (("areal", types.ModuleType("areal")), ("areal.utils", utils)):
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "profile.yaml").write_text(CONFIG)
    own = {}
    exec(RECIPE, own)  # noqa: S102 -- the page is the program

    for step in (0, 1):
        with tracer.trace_scope("train.rollout", category="compute", args={"global_step": step}):
            with tracer.trace_scope("workflow.episode"):
                pass
        with pytest.raises(ZeroDivisionError):
            with tracer.trace_scope("train.ppo_update", args={"global_step": step}):
                raise ZeroDivisionError
    own["prof"].close()

    spans = rlprof.read(own["prof"].run_dir).spans()
    phases = [(one.step, one.name) for one in spans if one.kind == "phase"]
    assert phases == [(0, "rollout"), (0, "ppo_update"), (1, "rollout"), (1, "ppo_update")]
    assert [name for name, _ in heard].count("workflow.episode") == 2
    assert len(RECIPE.strip().splitlines()) <= 10


# Errors of TRL's callback before there is a trainer


@pytest.mark.parametrize("config", ["nowhere.yaml", {"tool": "torhc", "roles": {"actor": {}}}])
def test_a_fault_of_the_config_is_raised_before_a_model_is_loaded(config, tmp_path, monkeypatch):
    """TRL's callback raises a config's faults when it is made; without a config it is off."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError):
        RlprofCallback(config)

    assert isinstance(RlprofCallback().prof, rlprof.Off)
    monkeypatch.setenv("RLPROF_CONFIG", "nowhere.yaml")
    with pytest.raises(ConfigError, match="RLPROF_CONFIG"):
        RlprofCallback()
