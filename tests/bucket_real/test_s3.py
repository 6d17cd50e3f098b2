"""Runs in a bucket of a server that speaks S3, through s3fs."""

import pytest

from rlprof_cli.doctor._folders import look_at_run_dir
from tests.bucket.training import _launch, fetched, trained  # noqa: F401 -- a fixture


@pytest.fixture(scope="module", autouse=True, name="url")
def _url():
    """Run an S3 server with an empty bucket, named by the environment; return a URL there."""
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
        yield "s3://profiles/runs"
    server.stop()


def test_ranks_of_torchrun_on_two_hosts_write_one_run(launch, url, tmp_path, capsys):
    """Ranks of one torchrun launch on two hosts write one whole run into an S3 bucket."""
    env = {"TORCHELASTIC_RUN_ID": "3f2504e0-4f89-11d3-9a0c-0305e82c3301", "RLPROF_RUN_ID": ""}
    ranks = [launch(f"host{rank}", rank, env=env) for rank in (0, 1)]

    for rank in ranks:
        trained(rank)

    run = fetched(url, tmp_path, capsys)
    assert run.run_id.endswith("-3f25")
    assert [one.state for one in run.captures] == ["whole"] * 4
    assert [process.state for process in run.processes] == ["ended", "ended"]


def test_the_doctor_tries_the_bucket(url):
    """The doctor's finding is ok for an S3 bucket and BAD for one that does not exist."""
    (fine,) = look_at_run_dir(url, 1)
    (bad,) = look_at_run_dir("s3://no-such-bucket/runs", 1)

    assert (fine.level, bad.level) == ("ok", "BAD")
