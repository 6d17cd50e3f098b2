"""The tool `npu` inside an engine's process: driven there as any tool."""

import json
from types import SimpleNamespace

import pytest

import rlprof
from rlprof_engine.recording import Place, obeyed
from rlprof_testing._inside import leading, linked
from rlprof_vllm import inside
from tests.fakes.torch_npu import FakeNpu
from tests.vllm_adapter.generations import Worker

pytestmark = pytest.mark.slow
WINDOW = rlprof.Window(1, 2, "rollout")


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_npu_is_driven_inside_an_engine(monkeypatch, tmp_path, engine):
    """Inside an engine the tool `npu` records a whole window, with a range for each step."""
    library = FakeNpu()
    library.install(monkeypatch)
    worker = Worker(1, tp=2)
    lazy = Place(1, {"tp": 1}, worker, "execute_model", str, is_lazy=True)
    config = {
        "run_dir": str(tmp_path / "runs"),
        "scratch_dir": str(tmp_path / "scratch"),
        "steps": [1],
        "roles": {"rollout": {"engine": engine, "tool": "npu"}},
        "tools": {"npu": {"analysis": "none"}},
    }

    def obey(order):
        text = json.dumps({"order": order, "iterations": {}})
        if engine == "vllm":
            return json.loads(inside.obey(SimpleNamespace(worker=worker), text))["state"]
        return json.loads(obeyed(text, lambda: lazy))["state"]

    with leading(config) as prof:
        workers = linked(prof, config, None, None).workers
        states = [obey(workers.prepare()), obey(workers.begin(WINDOW))]
        got = worker.execute_model("one")
        states.append(obey(workers.end(WINDOW)))

    (profile,) = library.profiles
    captures = [one for one in rlprof.read(prof.run_dir).captures if one.tool == "npu"]
    assert (got, states) == ("ran one", ["ready", "recording", "ended"])
    assert profile.calls == ["start", "step", "stop"]
    assert [(one.state, one.target.worker) for one in captures] == [("whole", 1)]
    assert library.marks.calls[-1][1] == "rlprof"
    assert library.marks.open == {}
