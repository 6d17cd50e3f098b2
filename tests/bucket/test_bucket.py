"""Runs whose `run_dir` is a URL: hosts that share only a bucket, here a folder."""

import json
import os
import signal
import socket

import pytest

import rlprof
from rlprof_cli import main
from tests.bucket.training import _launch, fetched, trained  # noqa: F401 -- a fixture
from tests.cases import cases
from tests.waiting import processes, wait_until

pytestmark = pytest.mark.slow


@pytest.fixture
def url(tmp_path):
    return f"file://{tmp_path}/bucket/runs"


def test_hosts_that_share_only_a_bucket_write_one_run(launch, url, tmp_path, capsys):
    """Ranks on two hosts write one whole run, leave no files there and never import fsspec."""
    ranks = [launch(f"host{rank}", rank) for rank in (0, 1)]

    said = [trained(rank) for rank in ranks]

    run = fetched(url, tmp_path, capsys)
    assert sorted((str(one.target), one.window.id, one.state) for one in run.captures) == [
        (f"actor {rank}/2", f"{step}/update", "whole") for rank in (0, 1) for step in (1, 2)
    ]
    assert [process.state for process in run.processes] == ["ended", "ended"]
    assert f"rlprof fetch {url}/job-7" in said[0][1]
    assert not list(tmp_path.glob("host*/rlprof-*/bucket/*/job-7"))
    assert [json.loads(out.splitlines()[-1]) for out, _ in said] == [[], []]


def test_an_end_removes_no_files_of_a_session_that_opens(launch, url, tmp_path, capsys):
    """A session that ends leaves the files of another one on its host, which still opens."""
    first, second = launch("host0"), launch("host0", 1, env={"HELD": "1"})
    assert second.stdout.readline() == "configures\n"
    wait_until(lambda: list(tmp_path.glob("host0/*/bucket/*/job-7/manifest/actor-1-*")))

    trained(first)
    second.stdin.write("go on\n")
    trained(second)

    assert len(fetched(url, tmp_path, capsys).captures) == 4


def test_a_killed_process_leaves_all_it_wrote(launch, url, tmp_path, capsys):
    """The helper of a killed process copies its files, and the host keeps them for salvage."""
    rank = launch("host0", size=1, period_s="600", name=socket.gethostname())
    assert rank.stdout.readline() == "open\n"
    rank.send_signal(signal.SIGKILL)
    rank.wait()

    wait_until(lambda: list(tmp_path.glob("bucket/runs/job-7/manifest/*")))

    run = fetched(url, tmp_path, capsys)
    assert [process.state for process in run.processes] == ["died"]
    (kept,) = tmp_path.glob("host0/rlprof-*/bucket/*/job-7")
    assert main(["ls", str(kept)]) == 0


def test_a_run_that_is_resumed_elsewhere_is_another_attempt(launch, url, tmp_path, capsys):
    """A run resumed on another host is attempt 2, and fetch copies new files only."""
    trained(launch("host0", size=1))
    trained(launch("host1", size=1))

    assert fetched(f"{url}/job-7", tmp_path, capsys).attempt == 1
    assert fetched(f"{url}/job-7/attempt_2", tmp_path, capsys).attempt == 2
    assert main(["fetch", url, "--out", str(tmp_path / "home")]) == 0
    assert ": 0 of " in capsys.readouterr().out  # it copies only what is new


@cases("late", {"size": 2, "rank": 1}, {"size": 1, "role": "critic"}, ids=["host", "role"])
def test_a_late_host_or_role_joins_the_live_run(launch, url, tmp_path, capsys, late):
    """A host or role that starts late joins the live run."""
    begun = launch("host0", size=late["size"])
    assert begun.stdout.readline() == "open\n"

    trained(launch("host1", **late))
    trained(begun)

    found = fetched(f"{url}/job-7", tmp_path, capsys).processes
    roles = ["actor", late.get("role", "actor")]
    assert sorted(process.target.role for process in found) == roles


def test_a_folder_named_by_rlprof_run_is_not_copied(launch, tmp_path):
    """A process with RLPROF_RUN writes into that folder and copies nothing to the bucket."""
    trained(launch("host0", size=1, env={"RLPROF_RUN": str(tmp_path / "named")}))

    assert {one.state for one in rlprof.read(tmp_path / "named").captures} == {"whole"}
    assert not (tmp_path / "bucket").exists()


def test_a_bucket_that_cannot_be_reached_leaves_rlprof_off(launch, url, tmp_path):
    """A bucket that cannot be reached is logged with its URL; training runs with rlprof off."""
    (tmp_path / "bucket").touch()

    _, err = trained(launch("host0", size=1))

    assert f"{url}: " in err
    assert "stays off" in err


def test_what_a_file_system_prints_is_no_answer(launch, url, tmp_path, capsys):
    """A file system that prints on stdout does not change the run."""
    (tmp_path / "sitecustomize.py").write_text(
        "from fsspec.implementations.local import LocalFileSystem as Local\nls = Local.ls\n"
        "Local.ls = lambda *given, **more: print('hello', flush=True) or ls(*given, **more)\n"
    )

    trained(launch("host0", size=1, env={"PYTHONPATH": str(tmp_path)}))

    assert {one.state for one in fetched(url, tmp_path, capsys).captures} == {"whole"}


# failures.md: no-folder
def test_a_bucket_that_hangs_leaves_no_process(launch, tmp_path):
    """The helper of a bucket that hangs ends once opening has failed or its process was killed."""
    launches = tmp_path / "bucket/runs/.launches"
    launches.mkdir(parents=True)
    os.mkfifo(launches / "job-7")
    off = launch("host0", size=1, limits={"configure_timeout_s": 1})
    killed = launch("host1", size=1, env={"LAST_S": "1"})
    wait_until(lambda: processes("copier", str(tmp_path / "host1")))

    killed.kill()

    assert off.stdout.readline() == "open\n"
    assert processes("copier", str(tmp_path / "host0")) == []
    wait_until(lambda: not processes("copier", str(tmp_path)))


# failures.md: helper-gone
def test_files_that_no_helper_copies_stay_on_the_host(launch, url, tmp_path, capsys):
    """Training outlives its helper; it logs `rlprof send` for files that were not copied."""
    ranks = [launch("host0", rank, size=3, limits={"export_timeout_s": 5}) for rank in range(3)]
    assert [rank.stdout.readline() for rank in ranks] == ["open\n"] * 3
    (dead,) = processes("copier", str(tmp_path), str(ranks[1].pid))
    (manifest,) = tmp_path.glob("host0/*/bucket/*/job-7/manifest/actor-1-*")
    runs = tmp_path / "bucket/runs"

    os.kill(dead, signal.SIGKILL)
    wait_until(lambda: "has ended; what is new waits in" in manifest.read_text())
    trained(ranks[0])
    runs.rename(tmp_path / "away")
    runs.touch()  # a file where a folder must be
    logs = [trained(rank)[1] for rank in ranks[1:]]

    runs.unlink()
    (tmp_path / "away").rename(runs)
    for log, why in zip(logs, ("has ended", "could not be copied"), strict=True):
        assert why in log
        assert main(log[log.index("rlprof send ") :].split()[1:4]) == 0
    capsys.readouterr()
    assert [one.state for one in fetched(url, tmp_path, capsys).captures] == ["whole"] * 6


def test_fetch_of_a_url_without_a_run_is_an_error(tmp_path, capsys):
    """Fetch of a URL without a run of rlprof is an error that names the URL."""
    opened = [json.dumps({"owner": {"opened_ns": ns}}) for ns in ("later", None)]
    for number, header in enumerate([*opened, "[" * 10**5]):
        file = tmp_path / f"foreign/{number}/run.json"
        file.parent.mkdir(parents=True)
        file.write_text(header)

    assert main(["fetch", f"file://{tmp_path}/foreign"]) == 1

    assert f"file://{tmp_path}/foreign: holds no run" in capsys.readouterr().err
