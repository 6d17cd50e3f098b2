"""The real vLLM with changed names: requests are answered, and each loss has a reason."""

import importlib.util
import os
from pathlib import Path

import pytest

from tests.edited.copies import Edit, edited
from tests.vllm_real.conftest import ROOT, _drive, _model  # noqa: F401 -- fixtures

pytestmark = pytest.mark.slow
PROFILER, OUTPUT, WORKERS = "config/profiler.py", "v1/engine/output_processor.py", "v1/worker/*.py"
CASES = {
    "as it is": ([], "whole", ""),
    "execute_model renamed": (
        [Edit("v1/worker/*_worker.py", r"def execute_model\(", "def run("),
         Edit("v1/worker/worker_base.py", r"def execute_model\(", "def run("),
         Edit("v1/worker/worker_base.py", r"self\.worker\.execute_model\(", "self.worker.run("),
         Edit("v1/worker/worker_base.py", r"(class WorkerWrapperBase[\s\S]*?)def run\(",
              r"\1def execute_model(")],
        "failed", "no CPUWorker.execute_model",
    ),
    "requests leave by del": (
        [Edit(OUTPUT, r"self\.request_states\.pop\(req_id\)", "del self.request_states[req_id]")],
        "whole", "",
    ),
    "times renamed": (
        [Edit("**/*.py", r"\b(queued|scheduled|first_token|last_token)_ts\b", r"\1_at")],
        "whole", "have no times",
    ),
    "tokens renamed": (
        [Edit("**/*.py", r"\bnum_generation_tokens\b", "num_made_tokens")], "whole", "",
    ),
    "profiler moved": (
        [Edit("**/*.py", r"from vllm\.config\.profiler import", "from vllm.config.moved import"),
         Edit("config/*.py", r"from \.profiler import", "from .moved import")],
        "whole", "",
    ),
    "profiler's folder renamed": (
        [Edit("**/*.py", r"\btorch_profiler_dir\b", "torch_traces_dir")], "whole", "",
    ),
    "the workers' wrapper renamed": (
        [Edit("v1/**/*.py", r"\bWorkerWrapperBase\b", "WorkerBox")], "whole", "native",
    ),
}  # fmt: skip
NATIVE = {
    "start_profile renamed": (
        [Edit("**/*.py", r"\b(start|stop)_profile\b", r"\1_recording")],
        "failed", "AsyncLLM has no start_profile",
    ),
    "parameters of start_profile renamed": (
        [Edit("v1/engine/async_llm.py", r"\bprofile_prefix\b", "file_prefix"),
         Edit("v1/engine/async_llm.py", r"\bmax_iterations\b", "most_iterations")],
        "whole", "native",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES | NATIVE)
def test_a_changed_release_is_recorded_or_says_why_not(case, drive, tmp_path):
    """Requests are answered, and each window has its steps and requests or a reason."""
    edits, state, words = (CASES | NATIVE)[case]
    package = Path(importlib.util.find_spec("vllm").origin).parent
    changed = edited(package, tmp_path, edits)
    if case == "profiler moved":
        moved = tmp_path / "vllm/config"
        (moved / "moved.py").write_text((package / PROFILER).read_text())
        (moved / "profiler.py").unlink()
    assert changed or not edits

    path = os.pathsep.join(map(str, (tmp_path, ROOT)))
    way = "native" if case in NATIVE else "auto"
    driven = drive("edited", env={"PYTHONPATH": path, "WAY": way})

    assert driven.told[0]["vllm"].startswith(str(tmp_path))
    assert [one["tokens"] for one in driven.told if "tokens" in one] == [[3, 4]] * 2
    captures = driven.run("edited").captures
    said = [text for one in captures for text in (*one.notes, *(a.note for a in one.artifacts))]
    said += [one.applied["way"] for one in captures if "way" in one.applied]
    states = {one.state for one in captures if one.tool == "vllm"}
    assert states == {state}
    assert any(words in one for one in said), said
    assert not any("idle" in one for one in said)
