"""Which span files a run lacks: those that nobody else writes."""

from __future__ import annotations

from types import SimpleNamespace

from rlprof.types import Target
from rlprof_run._lost import lost_spans


def test_a_replica_of_a_fleet_need_not_write_spans(tmp_path):
    """Its driver does, whatever another replica has written: both attach the engine."""
    folder = tmp_path / "spans"
    folder.mkdir()
    for name in ("driver-0", "+ray-driver-0", "rollout-0"):
        (folder / f"{name}.jsonl").write_text("{}\n")
    targets = {rank: Target("rollout", rank, 2, replica=rank) for rank in (0, 1)}
    processes = [SimpleNamespace(name="driver-0", target=Target("driver"), state="ended")]
    attached = []
    for rank, target in targets.items():
        processes.append(SimpleNamespace(name=f"rollout-{rank}", target=target, state="ended"))
        attached += [
            SimpleNamespace(target=target, process=name) for name in ("driver-0", f"rollout-{rank}")
        ]

    assert lost_spans(tmp_path, processes, attached) == {}
