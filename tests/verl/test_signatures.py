"""Each verl that was read has what rlprof-verl uses."""

from __future__ import annotations

import pytest

from tests.verl import signatures

KEPT = signatures.RECORD.kept()
HOOKS = ("on_step_begin", "on_sample_begin", "on_sample_end", "on_step_end")
"""Those that are overridden without arguments."""


@pytest.mark.parametrize("release", KEPT)
def test_a_verl_has_every_name_that_is_used(release):
    """Methods that are overridden, and attributes of trainers, replicas and servers."""
    said = KEPT[release]

    assert set(KEPT) == {*signatures.RELEASES, signatures.MAIN}
    for kind in ("RayPPOTrainer", "PPOTrainer")[: 1 if release == "verl==0.8.0" else 2]:
        assert None not in said[kind].values()
        assert list(signatures.ATTRIBUTES[kind][1]) == said[f"{kind}.attributes"]
    for name in ("RolloutReplica", "AgentLoopManager", "vLLMHttpServer", "SGLangHttpServer"):
        assert list(signatures.ATTRIBUTES[name][1]) == said[f"{name}.attributes"]
    for hook in HOOKS if release != "verl==0.8.0" else ():
        assert said["PPOTrainer"][hook] == f"def {hook}(self)"
    assert said["LLMServerManager"] == {"get_replicas": "def get_replicas(self)"}
    assert said["rollout_trace"] == ["rollout_trace_attr", "rollout_trace_op"]
