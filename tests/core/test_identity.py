"""Which run folder a process belongs to: all of a run agree, and nothing is overwritten."""

import errno
import json
import multiprocessing
import os
import re
import socket
import subprocess
import sys
import time

import pytest

from rlprof import RunError
from rlprof.rundir import RunFolder, join
from rlprof.types import Target
from rlprof_run import find_runs
from tests.cases import cases, refused

LEADER = Target("actor", 0, 8)
FOLLOWER = Target("actor", 3, 8)
CRITIC = Target("critic", 0, 2)
ENGINE, WORKER = Target("rollout", 0, 2), Target("rollout", 0, 2, replica=0, worker=0)
NAMED = {"RLPROF_RUN_ID": "a-run"}
HEADER = {"rlprof": "0.1", "config": {"steps": "all"}, "expected": {"actor": "all"}}
MEETING = {"MASTER_ADDR": "node-a", "MASTER_PORT": "29500", "WORLD_SIZE": "8"}


@pytest.fixture(name="runs")
def _runs(tmp_path):
    return tmp_path / "runs"


@pytest.fixture(name="at_once")
def _at_once(runs):
    """Return a function that joins, or fails without waiting."""
    return lambda target, env=NAMED: join(runs, target, HEADER, env=env, wait_s=0)


def owner_of(folder):
    return json.loads((folder.path / "run.json").read_bytes())["owner"]


def change(folder, **changes):
    """Say something else of the owner; fields of its process after `process_`."""
    header = json.loads((folder.path / "run.json").read_bytes())
    for key, value in changes.items():
        of_process = key.startswith("process_")
        place = header["owner"]["process"] if of_process else header["owner"]
        place[key.removeprefix("process_")] = value
    (folder.path / "run.json").write_text(json.dumps(header))
    return folder


def die(folder):
    return change(folder, process_started="1", opened_ns=1)


def move(folder, *, age_s=0.0):
    """Make the owner one of another host, which opened the run so long ago."""
    opened_ns = time.time_ns() + int((1 - age_s) * 1e9)
    return change(folder, process_host="another-host", opened_ns=opened_ns)


def contents(path):
    """Return all below *path*, with what is in it and when it was written."""
    return {
        file: (file.stat().st_mtime_ns, file.read_bytes() if file.is_file() else None)
        for file in path.rglob("*")
        if not any(part.startswith("attempt_") for part in file.relative_to(path).parts)
    }


@cases(
    "env, name",
    ({"RLPROF_RUN_ID": "mine", "TORCHELASTIC_RUN_ID": "t", "SLURM_JOB_ID": "7"}, "mine"),
    ({"RLPROF_RUN_ID": "", "TORCHELASTIC_RUN_ID": "t", "SLURM_JOB_ID": "7"}, "t"),
    ({"TORCHELASTIC_RUN_ID": "none", "SLURM_JOB_ID": "7"}, "slurm-7-0"),
    ({"SLURM_JOB_ID": "7", "SLURM_STEP_ID": "2"}, "slurm-7-2"),
    ({"RLPROF_RUN": "", "RLPROF_RUN_ID": "mine"}, "mine"),
)
def test_the_launcher_names_the_run(at_once, runs, env, name):
    """The id comes from RLPROF_RUN_ID, else torchrun, else Slurm; what says nothing is ignored."""
    assert RunFolder(runs / name, name, 1) == at_once(LEADER, env)


def test_a_random_id_gets_a_name_with_a_date(at_once, runs):
    """All leaders agree on it, followers find it, and a restart is another attempt."""
    env = {"TORCHELASTIC_RUN_ID": "109726cb-4443-400d-98d1-b5ba39228de4"}
    first = at_once(LEADER, env)
    others = [at_once(FOLLOWER, env), at_once(CRITIC, env)]
    again = at_once(LEADER, env | {"TORCHELASTIC_RESTART_COUNT": "1"})

    assert re.fullmatch(r"\d{8}-\d{6}-1097", first.run_id)
    assert others == [first, first]
    assert again == RunFolder(first.path / "attempt_2", first.run_id, 2)
    assert sorted(find_runs(runs)) == [first.path, again.path]


@pytest.mark.parametrize("run_id", ["../up", "a b", "x" * 129])
def test_an_id_that_cannot_name_a_folder_is_refused(at_once, tmp_path, run_id):
    """An id is one component of a path and stays where it is put, or the message says why not."""
    expected = f"run id: {run_id!r} cannot name a folder; use letters, digits, '.', '_', '-'"

    assert refused(RunError, at_once, LEADER, {"RLPROF_RUN_ID": run_id}) == expected
    assert list(tmp_path.iterdir()) == []


def test_others_may_read_the_header(at_once):
    """Whatever the umask, run.json can be read by whoever the folder lets in."""
    umask = os.umask(0o077)

    try:
        found = at_once(LEADER)
    finally:
        os.umask(umask)

    assert (found.path / "run.json").stat().st_mode & 0o777 == 0o644


def test_a_leader_that_is_overtaken_joins_the_faster_one(at_once, monkeypatch):
    """Of two leaders that both see no run, the second to write finds the first one's."""
    led = []
    link = os.link

    def be_late(draft, path):
        monkeypatch.setattr(os, "link", link)
        led.append(at_once(CRITIC))
        link(draft, path)

    monkeypatch.setattr(os, "link", be_late)

    found = at_once(LEADER)

    assert led == [found]
    assert (found.attempt, owner_of(found)["role"]) == (1, "critic")


def test_a_file_system_without_room_leaves_no_header_and_one_without_links_one(
    at_once, runs, monkeypatch
):
    """What cannot be written whole is not there; without links it is made exclusively, and once."""
    refusal = OSError(errno.ENOSPC, "No space left on device")

    def refuse(source, target):
        raise refusal

    monkeypatch.setattr(os, "link", refuse)
    with pytest.raises(RunError, match="cannot be made: No space"):
        at_once(LEADER)
    assert list((runs / "a-run").iterdir()) == []
    refusal = OSError(errno.EPERM, "no links here")
    found = [at_once(LEADER), at_once(CRITIC)]

    assert found == [found[0]] * 2
    assert (found[0].attempt, owner_of(found[0])["role"]) == (1, "actor")


@cases("env", NAMED, {"SLURM_JOB_ID": "7"}, {"PMIX_NAMESPACE": "prterun-1@1"}, MEETING, {})
def test_followers_find_the_leaders_run(at_once, env):
    """By the id, or by what the launcher told all; a second session waits for the next attempt."""
    led = at_once(LEADER, env)

    assert [led, led] == [at_once(Target("actor", rank, 8), env) for rank in (3, 7)]
    refused(RunError, at_once, FOLLOWER, env)
    again = at_once(LEADER, env)
    assert again == at_once(FOLLOWER, env)
    assert again.path != led.path


# failures.md: no-leader
def test_without_a_leader_the_message_helps(runs, monkeypatch):
    """A rank that finds no run says what was missing and what to do; it makes none itself."""
    pauses = []
    monkeypatch.setattr(time, "sleep", pauses.append)
    how = {"env": NAMED, "wait_s": 0.02}

    expected = (
        f"{runs}: rank 0 has opened no run that actor 3/8 could join within 0.02 s; "
        "open the session on rank 0 too, share the folder between hosts, or set RLPROF_RUN_ID"
    )
    assert expected == refused(RunError, join, runs, FOLLOWER, HEADER, **how)
    assert pauses
    assert all(0.05 <= pause <= 1 for pause in pauses)
    assert not runs.exists()


@pytest.mark.parametrize("other", [{"MASTER_PORT": "29501"}, {"WORLD_SIZE": "2"}, {}])
def test_followers_of_another_launch_stay_away(at_once, other):
    """A run of another address, port or size is not joined, nor one that was named."""
    at_once(LEADER, MEETING if other else NAMED)

    refused(RunError, at_once, FOLLOWER, MEETING | other)


def test_localhost_is_another_on_every_host(at_once, monkeypatch):
    """Two hosts that share a folder and both meet at localhost do not share a run."""
    local = MEETING | {"MASTER_ADDR": "localhost"}
    with monkeypatch.context() as patch:
        patch.setattr(socket, "gethostname", lambda: "another-host")
        at_once(LEADER, local)
        shared = at_once(LEADER, MEETING)

    refused(RunError, at_once, FOLLOWER, local)
    assert shared == at_once(FOLLOWER, MEETING)


def test_a_resumed_run_is_another_attempt(at_once, runs):
    """Other roles join while its owner lives, followers never the dead; then it goes on beside."""
    first = at_once(LEADER)
    before = contents(first.path)
    assert first == at_once(CRITIC)
    assert before == contents(first.path)
    die(first)
    (first.path / "manifest").mkdir()
    (first.path / "manifest" / "actor-0.jsonl").write_text("lines\n")
    before = contents(first.path)

    refused(RunError, at_once, FOLLOWER)
    second = die(at_once(CRITIC))
    third = at_once(CRITIC)
    followers = [at_once(target) for target in (LEADER, FOLLOWER)]

    assert RunFolder(runs / "a-run" / "attempt_2", "a-run", 2) == second
    assert RunFolder(runs / "a-run" / "attempt_3", "a-run", 3) == third
    assert [owner_of(folder)["attempt"] for folder in (second, third)] == [2, 3]
    assert [third, third] == followers
    assert before == contents(first.path)


@pytest.mark.parametrize("variable", ["TORCHELASTIC_RESTART_COUNT", "SLURM_RESTART_COUNT"])
def test_a_restart_is_another_attempt(at_once, variable):
    """A launcher that starts all workers again separates them from the last ones, dead or not."""
    again = NAMED | {"TORCHELASTIC_RESTART_COUNT": "0"} | {variable: "1"}
    first = at_once(LEADER, NAMED | {"TORCHELASTIC_RESTART_COUNT": "0"})

    refused(RunError, at_once, FOLLOWER, again)
    second = at_once(CRITIC, again)

    assert [first.attempt, second.attempt] == [1, 2]
    assert [second, second] == [at_once(target, again) for target in (FOLLOWER, LEADER)]
    assert first == at_once(FOLLOWER)


@cases("content", b"", b"{", b'{"owner": {"role": "critic"}}', ids=["empty", "cut", "other"])
def test_a_header_nobody_understands_is_left_alone(at_once, runs, content):
    """A leader goes on to the next attempt and a follower past it; neither writes to it."""
    file = runs / "a-run" / "run.json"
    file.parent.mkdir(parents=True)
    file.write_bytes(content)

    found = at_once(LEADER)

    assert found.attempt == 2
    assert found == at_once(FOLLOWER)
    assert content == file.read_bytes()


def in_the_fifth(pauses, do):
    """Return a `sleep` that notes the pauses, and does something in the fifth."""
    return lambda seconds: pauses.append(seconds) or (len(pauses) == 5 and do())


@pytest.mark.parametrize("target", [FOLLOWER, CRITIC])
@pytest.mark.parametrize("grows", [True, False])
def test_an_older_run_of_another_host_may_have_crashed(at_once, runs, target, grows, monkeypatch):
    """It is joined if its manifests are seen to grow; else what its leader opens anew."""
    led = move(at_once(LEADER), age_s=3600)
    manifest = led.path / "manifest" / "actor-0.jsonl"
    manifest.parent.mkdir()
    manifest.write_text("line\n")
    before, pauses, second = contents(led.path), [], []

    def goes_on():
        second.append(led if grows else move(at_once(LEADER)))
        return grows and manifest.write_text("line\nline\n")

    monkeypatch.setattr(time, "sleep", in_the_fifth(pauses, goes_on))

    found = join(runs, target, HEADER, env=NAMED, wait_s=5)

    assert (second, found.attempt) == ([found], 1 if grows else 2)
    assert len(pauses) == 5 if grows else before == contents(led.path)


def test_a_named_folder_keeps_its_header(at_once, tmp_path):
    """Whoever joins overwrites nothing, also if its owner is dead; a second session is beside."""
    env = {"RLPROF_RUN": str(tmp_path / "x")}
    led = die(at_once(LEADER, env))
    before = contents(led.path)

    joined = [at_once(target, env) for target in (CRITIC, FOLLOWER, ENGINE, WORKER)]
    again = [at_once(target, env) for target in (LEADER, FOLLOWER, WORKER)]

    assert [led] * 4 == joined  # an engine that computes in its actor has two sessions there
    assert before == contents(led.path)
    assert {tmp_path / "x/attempt_2"} == {folder.path for folder in again}


_barriers = []


def _join_together(runs, place, env):
    _barriers[0].wait(60)
    return join(runs, Target(*place, 8), {}, env=env, wait_s=20)


def _enter(barrier):
    _barriers.append(barrier)


@pytest.fixture(name="race", scope="module")
def _race():
    """Return a function that lets four processes join at the same moment, each in its place."""
    spawned = multiprocessing.get_context("spawn")
    with spawned.Pool(4, _enter, [spawned.Barrier(4)]) as pool:

        def race(runs, places, env):
            jobs = [pool.apply_async(_join_together, (runs, place, env)) for place in places]
            return [job.get(60) for job in jobs]

        yield race


@pytest.mark.slow
def test_leaders_of_one_moment_share_an_attempt_unless_they_are_in_one_place(race, runs, at_once):
    """Two roles that come back meet in a new one, every time; four servers of rank 0 never do."""
    roles = [("actor", 0), ("critic", 0), ("critic", 1), ("actor", 1)]
    names = [f"run-{number}" for number in range(10)]
    for name in names:
        die(at_once(LEADER, {"RLPROF_RUN_ID": name}))

    found = [race(runs, roles, {"RLPROF_RUN_ID": name}) for name in names]
    alone = race(runs, [("rollout", 0)] * 4, NAMED)

    assert sorted(folder.attempt for folder in alone) == [1, 2, 3, 4]
    assert [[RunFolder(runs / name / "attempt_2", name, 2)] * 4 for name in names] == found


@pytest.mark.slow
def test_jobs_without_a_launchers_name_are_told_apart_by_their_parent(tmp_path):
    """Two jobs on one host, started by two shells with RANK alone, never mix in one folder."""
    script = (
        "import sys, time; from pathlib import Path; from rlprof.rundir import join\n"
        "from rlprof.types import Target\n"
        "rank = int(sys.argv[1])\n"
        "found = join(Path(sys.argv[2]), Target('actor', rank, 2), {}, env={'WORLD_SIZE': '2'})\n"
        "print(found.path, flush=True)\n"
        "time.sleep(2)\n"
    )
    shell = "{py} -c '{code}' 0 {dir} & {py} -c '{code}' 1 {dir} & wait"
    command = shell.format(py=sys.executable, code=script.replace("'", '"'), dir=tmp_path)
    argv = ["bash", "-c", command]
    jobs = [subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) for _ in range(2)]

    folders = [set(job.communicate(timeout=60)[0].split()) for job in jobs]

    assert [len(folder) for folder in folders] == [1, 1]
    assert folders[0] != folders[1]
