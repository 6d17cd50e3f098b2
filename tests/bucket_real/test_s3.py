"""Runs in a bucket of a server that speaks S3, through s3fs."""

import json
import os
import subprocess
import sys

import pytest

import rlprof
from rlprof_cli import main
from rlprof_cli.doctor._folders import look_at_run_dir
from tests.bucket.training import TRAIN, config

BOUND_S = 120
URL = "s3://profiles/runs"


@pytest.fixture(scope="module", autouse=True)
def _server():
    """Run an S3 server with an empty bucket, named by the environment."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
        patch.setenv("AWS_ACCESS_KEY_ID", "someone")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        import s3fs

        s3fs.S3FileSystem().mkdir("profiles")
        yield
    server.stop()


def test_ranks_of_torchrun_on_two_hosts_write_one_run(tmp_path, capsys):
    """Ranks of one torchrun launch on two hosts write one whole run into an S3 bucket."""
    launch = "3f2504e0-4f89-11d3-9a0c-0305e82c3301"
    env = os.environ | {"TORCHELASTIC_RUN_ID": launch, "WORLD_SIZE": "2", "BUCKET_PERIOD_S": "1"}
    ranks = []
    for rank, host in enumerate(("host0", "host1")):
        said = json.dumps(config(URL, tmp_path / host))
        ranks.append(subprocess.Popen(
            [sys.executable, "-c", TRAIN, said, "actor", host],
            env=env | {"RANK": str(rank)}, stdin=subprocess.PIPE, text=True,
        ))  # fmt: skip

    for rank in ranks:
        rank.communicate("go on\n", BOUND_S)

    assert [rank.returncode for rank in ranks] == [0, 0]
    assert main(["fetch", URL, "--out", str(tmp_path / "home")]) == 0
    run = rlprof.read(capsys.readouterr().out.partition(":")[0])
    assert run.run_id.endswith("-3f25")
    assert sorted((str(one.target), one.window.id, one.state) for one in run.captures) == [
        (f"actor {rank}/2", f"{step}/update", "whole") for rank in (0, 1) for step in (1, 2)
    ]
    assert [process.state for process in run.processes] == ["ended", "ended"]


def test_the_doctor_tries_the_bucket():
    """The doctor's finding is ok for an S3 bucket and BAD for one that does not exist."""
    (fine,) = look_at_run_dir(URL, 1)
    (bad,) = look_at_run_dir("s3://no-such-bucket/runs", 1)

    assert (fine.level, bad.level) == ("ok", "BAD")
