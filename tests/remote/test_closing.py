"""A session that closes waits for the processes of its engines, and not for ever."""

from __future__ import annotations

import json
from types import SimpleNamespace

import attrs
import pytest

from rlprof.rundir import Here
from rlprof_remote import closing


@pytest.mark.slow
def test_a_process_that_does_not_end_is_waited_for_so_long_and_named(tmp_path, monkeypatch):
    """The log says once what is waited for, and at the end which process had not closed."""
    monkeypatch.setattr(closing, "_SILENT_S", 0)
    file = tmp_path / "manifest" / "rollout-0-host-1-replica2-worker0.jsonl"
    file.parent.mkdir()
    file.write_text(json.dumps({"here": attrs.asdict(Here.now())}) + "\n")
    (file.parent / "rollout-0-host-1-replica3-worker0.jsonl").write_bytes(file.read_bytes())
    said = []
    limits = SimpleNamespace(export_timeout_s=0.3)
    session = SimpleNamespace(
        run_dir=tmp_path,
        config=SimpleNamespace(limits=limits),
        log=lambda *text: said.append(text[0]),
    )
    wait = closing.Wait()
    wait.replicas.add(("rollout", 2))

    wait(session)

    assert said == [
        f"waits up to 0.3 s for the exports of {file.stem}",
        f"did not wait for {file.stem}",
    ]
