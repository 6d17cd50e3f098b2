"""The run folder that a process joins: all processes of a run agree, and none overwrites it."""

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
    """Return a function that joins a run or fails without waiting."""
    return lambda target, env=NAMED: join(runs, target, HEADER, env=env, wait_s=0)


def owner_of(folder):
    return json.loads((folder.path / "run.json").read_bytes())["owner"]


def change(folder, **changes):
    """Change fields of the owner in run.json; `process_` names a field of its process."""
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
    """Make the owner a process of another host that opened the run *age_s* ago."""
    opened_ns = time.time_ns() + int((1 - age_s) * 1e9)
    return change(folder, process_host="another-host", opened_ns=opened_ns)


def contents(path):
    """Return every path below *path* with its time and content, except for attempts."""
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
    """The run id comes from RLPROF_RUN_ID, else torchrun, else Slurm; empty values are ignored."""
    assert RunFolder(runs / name, name, 1) == at_once(LEADER, env)


def test_a_random_id_gets_a_name_with_a_date(at_once, runs):
    """A random id becomes a dated name that all roles share; a restart is another attempt."""
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
    """A run id that cannot name a folder is refused, and nothing is written."""
    expected = f"run id: {run_id!r} cannot name a folder; use letters, digits, '.', '_', '-'"

    assert refused(RunError, at_once, LEADER, {"RLPROF_RUN_ID": run_id}) == expected
    assert list(tmp_path.iterdir()) == []


def test_others_may_read_the_header(at_once):
    """run.json is readable by other users under any umask."""
    umask = os.umask(0o077)

    try:
        found = at_once(LEADER)
    finally:
        os.umask(umask)

    assert (found.path / "run.json").stat().st_mode & 0o777 == 0o644


def test_a_leader_that_is_overtaken_joins_the_faster_one(at_once, monkeypatch):
    """Of two leaders that both see no run, the second to write joins the first one's."""
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


def test_a_header_is_written_whole_or_not_at_all(at_once, runs, monkeypatch):
    """A full file system leaves no header; one without hard links has exactly one."""
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
    """Followers find the run by its id or launcher; a second session joins the next attempt."""
    led = at_once(LEADER, env)

    assert [led, led] == [at_once(Target("actor", rank, 8), env) for rank in (3, 7)]
    refused(RunError, at_once, FOLLOWER, env)
    again = at_once(LEADER, env)
    assert again == at_once(FOLLOWER, env)
    assert again.path != led.path


# failures.md: no-leader
def test_a_rank_that_finds_no_run_is_refused(runs, monkeypatch):
    """A rank that finds no run reports what is missing and creates none."""
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
def test_followers_do_not_join_the_run_of_another_launch(at_once, other):
    """A follower does not join a run of another port or world size, nor one with a name."""
    at_once(LEADER, MEETING if other else NAMED)

    refused(RunError, at_once, FOLLOWER, MEETING | other)


def test_localhost_is_a_different_address_on_each_host(at_once, monkeypatch):
    """Two hosts that share a folder and both use localhost as address do not share a run."""
    local = MEETING | {"MASTER_ADDR": "localhost"}
    with monkeypatch.context() as patch:
        patch.setattr(socket, "gethostname", lambda: "another-host")
        at_once(LEADER, local)
        shared = at_once(LEADER, MEETING)

    refused(RunError, at_once, FOLLOWER, local)
    assert shared == at_once(FOLLOWER, MEETING)


def test_a_resumed_run_is_another_attempt(at_once, runs):
    """Roles join a live owner's run; after its death, leaders and followers use a new attempt."""
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
    """A restart count of the launcher makes another attempt, even while the first one lives."""
    again = NAMED | {"TORCHELASTIC_RESTART_COUNT": "0"} | {variable: "1"}
    first = at_once(LEADER, NAMED | {"TORCHELASTIC_RESTART_COUNT": "0"})

    refused(RunError, at_once, FOLLOWER, again)
    second = at_once(CRITIC, again)

    assert [first.attempt, second.attempt] == [1, 2]
    assert [second, second] == [at_once(target, again) for target in (FOLLOWER, LEADER)]
    assert first == at_once(FOLLOWER)


@cases("content", b"", b"{", b'{"owner": {"role": "critic"}}', ids=["empty", "cut", "other"])
def test_an_unreadable_header_is_skipped(at_once, runs, content):
    """A leader and its follower skip an unreadable header, use the next attempt and keep it."""
    file = runs / "a-run" / "run.json"
    file.parent.mkdir(parents=True)
    file.write_bytes(content)

    found = at_once(LEADER)

    assert found.attempt == 2
    assert found == at_once(FOLLOWER)
    assert content == file.read_bytes()


def in_the_fifth(pauses, do):
    """Return a `sleep` that records the pauses and calls *do* in the fifth."""
    return lambda seconds: pauses.append(seconds) or (len(pauses) == 5 and do())


@pytest.mark.parametrize("target", [FOLLOWER, CRITIC])
@pytest.mark.parametrize("grows", [True, False])
def test_an_older_run_of_another_host_may_have_crashed(at_once, runs, target, grows, monkeypatch):
    """An old run of another host is joined if its manifests grow, otherwise its next attempt is."""
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
    """A folder named by RLPROF_RUN keeps its header; a second session is the next attempt."""
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


@pytest.mark.slow
def test_simultaneous_leaders_share_an_attempt_unless_they_share_a_rank(runs, at_once):
    """Roles that return at one moment share an attempt; processes of one rank never do."""
    roles = [("actor", 0), ("critic", 0), ("critic", 1), ("actor", 1)]
    names = [f"run-{number}" for number in range(10)]
    for name in names:
        die(at_once(LEADER, {"RLPROF_RUN_ID": name}))
    spawned = multiprocessing.get_context("spawn")

    with spawned.Pool(4, _enter, [spawned.Barrier(4)]) as pool:

        def race(places, env):
            jobs = [pool.apply_async(_join_together, (runs, place, env)) for place in places]
            return [job.get(60) for job in jobs]

        found = [race(roles, {"RLPROF_RUN_ID": name}) for name in names]
        alone = race([("rollout", 0)] * 4, NAMED)

    assert sorted(folder.attempt for folder in alone) == [1, 2, 3, 4]
    assert [[RunFolder(runs / name / "attempt_2", name, 2)] * 4 for name in names] == found


@pytest.mark.slow
def test_jobs_without_a_launcher_are_separated_by_their_parent(tmp_path):
    """Two jobs on one host that two shells start without a launcher use different folders."""
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
