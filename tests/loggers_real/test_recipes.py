"""The recipes of docs/loggers.md in a real loop with the real loggers, read from disk."""

import json
import os
import socket
import struct
import subprocess
import sys
import threading
import urllib.request

import pytest

import rlprof
from rlprof_run import find_runs
from tests.docs.pages import PAGES, blocks, section

PAGE = PAGES["docs/loggers.md"]
LOOP = """
import time
import rlprof
{before}
with rlprof.open("always", role="actor") as prof:
    for step in prof.steps(range(1, 4)):
        with prof.phase("rollout (vLLM)"):
            deadline = time.monotonic() + 60
            while prof.figures().get("rlprof/step", 0) < step - 1 and time.monotonic() < deadline:
                time.sleep(0.05)  # a step takes as long as the figures of the one before
        metrics = {{"reward": 0.5}}
{inside}
{after}
"""


@pytest.fixture(name="calls")
def _calls(monkeypatch):
    """Stand in for every HTTP proxy; yield the list of request lines."""
    asked = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def listen():
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    asked.append(connection.recv(4096).split(b"\r\n")[0])

        threading.Thread(target=listen, daemon=True).start()
        for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{server.getsockname()[1]}")
        for name in ("no_proxy", "NO_PROXY"):
            monkeypatch.delenv(name, raising=False)
        yield asked
        server.shutdown(socket.SHUT_RDWR)


@pytest.fixture(name="logged")
def _logged(tmp_path, calls):
    """Return a function that runs a loop with a recipe and returns seconds by step."""

    def run(heading, before, after=""):
        (recipe,) = blocks(section(PAGE, heading), "python")
        lines = recipe.text.splitlines()
        once = [line for line in lines if "# after" in line]
        inside = "\n".join(f"        {line}" for line in lines if line not in once)
        before = "\n".join([before, *once])
        (tmp_path / "loop.py").write_text(LOOP.format(before=before, inside=inside, after=after))
        own = {"MLFLOW_ALLOW_FILE_STORE": "true", "MLFLOW_TRACKING_URI": "file:runs"}
        own["WANDB_ERROR_REPORTING"] = "false"  # otherwise it reports its own use, even offline
        env = {**os.environ, **own}
        done = subprocess.run(
            [sys.executable, "loop.py"], cwd=tmp_path, env=env, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        assert calls == []
        (folder,) = find_runs(tmp_path / "outputs/profile")
        spans = rlprof.read(folder).spans()
        return {span.step: span.seconds for span in spans if span.kind == "step"}

    return run


def test_wandb_has_each_step(logged, tmp_path):
    """The offline W&B file has figures and metrics of each step, and no request is sent."""
    steps = logged("Weights & Biases", 'import wandb; run = wandb.init(mode="offline")',
                   "run.finish()")  # fmt: skip

    (file,) = tmp_path.glob("wandb/offline-run-*/run-*.wandb")
    rows = list(history(file.read_bytes()))
    seen = {row["rlprof/step"]: row["rlprof/step_s"] for row in rows if "rlprof/step" in row}
    assert [row["reward"] for row in rows] == [0.5] * 3
    assert seen == {1: steps[1], 2: steps[2]}


def test_mlflow_has_each_step(logged, tmp_path, monkeypatch):
    """MLflow's file store has a value per step, under valid names."""
    steps = logged("MLflow", "import mlflow")

    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    from mlflow import MlflowClient

    client = MlflowClient(f"file:{tmp_path}/runs")
    (run,) = client.search_runs(["0"])
    values = client.get_metric_history(run.info.run_id, "rlprof/step_s")
    assert [(one.step, one.value) for one in values] == [(1, steps[1]), (2, steps[2])]
    assert [name for name in run.data.metrics if "/phase/" in name] == [
        "rlprof/phase/rollout _vLLM__s"
    ]


def test_tensorboard_has_each_step(logged, tmp_path):
    """TensorBoard's event file has a scalar per step."""
    steps = logged(
        "TensorBoard",
        "from torch.utils.tensorboard import SummaryWriter; writer = SummaryWriter('events')",
        "writer.close()",
    )

    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(tmp_path / "events")).Reload()
    values = events.Scalars("rlprof/step_s")
    assert [one.step for one in values] == [1, 2]
    assert [one.value for one in values] == pytest.approx([steps[1], steps[2]])


def test_a_request_would_be_seen(calls):
    """The proxy of these tests sees an HTTP request."""
    with pytest.raises(OSError):
        urllib.request.urlopen("http://example.invalid/", timeout=10)

    assert calls == [b"GET http://example.invalid/ HTTP/1.1"]


def history(data):
    """Read the rows of a run from a W&B file: a log of protobuf records, in blocks of 32 KiB."""
    from wandb.proto.wandb_internal_pb2 import Record

    at, whole = 7, b""
    while at + 7 <= len(data):
        if 32768 - at % 32768 < 7:
            at += 32768 - at % 32768
            continue
        _, length, kind = struct.unpack_from("<IHB", data, at)
        whole += data[at + 7 : at + 7 + length]
        at += 7 + length
        if kind in (1, 4):  # a whole record, or its last piece
            record, whole = Record.FromString(whole), b""
            if record.WhichOneof("record_type") == "history":
                items = record.history.item
                yield {one.key or one.nested_key[0]: json.loads(one.value_json) for one in items}
