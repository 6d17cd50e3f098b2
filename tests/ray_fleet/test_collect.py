"""Files that members write to their nodes are collected, or are left there and listed."""

import hashlib
import os
import signal
import socket
from pathlib import Path
from shutil import copytree
from types import SimpleNamespace

import pytest

import rlprof
from rlprof.rundir import RunFolder, as_line
from rlprof_cli import main
from rlprof_ray import _collect, _inside
from rlprof_ray._collect import PIECE, PIECES, Agent, collect
from rlprof_run import Place
from tests.cases import cases
from tests.core.test_reader import beginning, event
from tests.ray_fleet.actors import Trainer
from tests.ray_fleet.conftest import rows
from tests.ray_fleet.drivers import drive, environment
from tests.waiting import python, wait_until

pytestmark = pytest.mark.slow

TRACE = "step_000002/update/actor_0_of_1/stacks/a.bin"
SPANS = "spans/actor-0-far-1.jsonl"
MANIFEST = "manifest/actor-0-far-1.jsonl"
HEADER = '{"run_id": "a-run", "owner": {"attempt": 1, "opened_ns": 1}}'
HOST = socket.gethostname()
LARGE = 3 * PIECE * PIECES + 12_345
"""More bytes than one answer holds, and not a multiple of a piece."""


def files(folder):
    found = [file for file in Path(folder).rglob("*") if not file.is_dir()]
    return {str(file.relative_to(folder)): file.lstat().st_size for file in found}


def test_files_on_a_node_are_collected_when_the_fleet_closes(actors, config, trained, tmp_path):
    """After the close, the run folder has every file with its checksum, and the node has none."""
    nodes = tmp_path / "nodes"

    fleet, _ = trained(config(steps=[2], fleet={"node_dir": str(nodes)}), actors)

    run = rlprof.read(fleet.run_dir)
    assert rows(fleet) == ["2/update actor 0/2 whole", "2/update actor 1/2 whole"]
    assert (run.left, run.problems, run.missing) == ((), (), ())
    for artifact in (artifact for capture in run.captures for artifact in capture.artifacts):
        data = (run.path / artifact.path).read_bytes()
        assert (artifact.size, artifact.sha256) == (len(data), hashlib.sha256(data).hexdigest())
    assert files(nodes) == {}
    assert [process.state for process in run.processes] == ["ended"] * 3


@pytest.mark.parametrize("is_seen", [True, False])
def test_a_run_folder_without_the_drivers_manifest_is_one_of_this_node(ray, tmp_path, is_seen):
    """A run folder without the driver's manifest is the node's own, and it is collected."""
    (tmp_path / "driver.jsonl").touch()
    seen = SimpleNamespace(manifest=str(tmp_path / ("driver.jsonl" if is_seen else "none.jsonl")))

    place = _inside._place(SimpleNamespace(leader=seen, node_dir=None), tmp_path)

    assert (place and place.folder) == (None if is_seen else str(tmp_path))


def test_with_collect_off_files_stay_and_are_listed(spawn, config, trained, tmp_path, capsys):
    """With `collect: false` files stay: `rlprof ls` lists them, `rlprof collect` fetches them."""
    nodes = {"node_dir": str(tmp_path / "nodes"), "collect": False}
    fleet, _ = trained(config(steps=[2], fleet=nodes), [spawn(Trainer)])
    (left,) = rlprof.read(fleet.run_dir).left
    there = files(left.folder)

    main(["ls", str(fleet.run_dir)])
    listed = capsys.readouterr().out
    codes = [main(["collect", str(fleet.run_dir)]) for _ in (1, 2)]

    assert len(there) > 1
    assert f"on {HOST} in {left.folder}: " in listed
    assert "missing" not in listed
    assert codes == [0, 0]
    assert "nothing to collect" in capsys.readouterr().out
    assert rows(fleet) == ["2/update actor 0/1 whole"]
    assert rlprof.read(fleet.run_dir).left == ()


# failures.md: left-on-node
def test_files_of_a_killed_driver_are_collected_by_another_process(ray, config, tmp_path):
    """After the driver is killed, `rlprof collect` in another process fetches whole captures."""
    address, nodes = ray.get_runtime_context().gcs_address, tmp_path / "nodes"
    given = config(steps=[2], fleet={"node_dir": str(nodes)})
    died = drive(given, address=address, end="killed", where="after")
    (left,) = rlprof.read(died.run).left
    wait_until(lambda: not rlprof.read(left.folder).is_running)  # Ray ends actors of a dead driver

    words = ("-m", "rlprof", "collect", died.run, "--address", address)
    done = python(*words, env=environment())

    assert (died.code, left.files) == (-signal.SIGKILL, None)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{left.folder}: " in done.stdout
    found = rlprof.read(died.run)
    assert [capture.state for capture in found.captures] == ["whole", "whole"]
    assert (found.left, files(nodes)) == ((), {})


def test_collect_fails_if_no_cluster_answers(config, tmp_path):
    """`rlprof collect` fails and names the address if no cluster answers there."""
    (tmp_path / "manifest").mkdir()
    (tmp_path / "run.json").write_text('{"run_id": "r", "owner": {"attempt": 1, "opened_ns": 1}}')
    place = {"node": "n", "host": "h", "folder": "/f"}
    lines = [*beginning(), event("elsewhere", **place), event("ended")]
    (tmp_path / "manifest" / "driver-0.jsonl").write_bytes(b"".join(map(as_line, lines)))

    done = python("-m", "rlprof", "collect", tmp_path, "--address", "127.0.0.1:1", timeout=120)

    assert done.returncode == 1
    assert "no cluster answers at 127.0.0.1:1" in done.stderr


@pytest.fixture(name="far")
def _far(tmp_path):
    """Make the folder of a node: a large artifact, spans, a manifest, as a member leaves them."""
    folder = tmp_path / "node" / "a-run"
    for path, size in ((TRACE, LARGE), (SPANS, 0), (MANIFEST, 100)):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(os.urandom(size))
    os.utime(folder / MANIFEST, (1, 1))  # no process writes to it any more
    (folder / "run.json").write_text(HEADER)
    return folder


@pytest.fixture(name="home")
def _home(tmp_path):
    folder = tmp_path / "home" / "a-run"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture(name="bring")
def _bring(ray, home, far):
    """Return a function that collects a node's folder and returns the outcome."""
    here = ray.get_runtime_context().get_node_id()

    def bring(folder=far, node=here, host=HOST):
        place = Place(node, host, str(folder))
        (outcome,) = collect(RunFolder(home, "a-run", 1), [place], of="driver-0", within_s=120)
        return outcome

    return bring


def came(home):
    return {path: size for path, size in files(home).items() if not path.startswith("manifest/+")}


def test_a_folder_is_collected_byte_by_byte(bring, home, far):
    """All files but `run.json` arrive unchanged and leave the node; a link stays there."""
    before = (far / TRACE).read_bytes()
    there = files(far)
    (far / "step_000002" / "link").symlink_to("/etc/passwd")

    outcome = bring()

    assert (outcome.error, outcome.files, outcome.left_files) == ("", 3, 0)
    assert came(home) == {TRACE: LARGE, SPANS: 0, MANIFEST: 100}
    assert before == (home / TRACE).read_bytes()
    assert sum(there.values()) - there["run.json"] == outcome.bytes
    assert set(files(far)) == {"run.json", "step_000002/link"}


# failures.md: left-on-node, foreign-files
@cases(
    "fault, error",
    (("run.json", HEADER.replace("a-run", "b-run")), "belongs to another run, b-run"),
    ((MANIFEST, b"".join(map(as_line, beginning())).decode()), "still writes"),
)
def test_a_foreign_or_live_folder_is_not_collected(bring, home, far, fault, error):
    """A folder of another run, or of a member that still writes, is neither read nor changed."""
    (far / fault[0]).write_text(fault[1])
    there = files(far)

    outcome = bring()

    assert error in outcome.error
    assert (outcome.files, came(home), files(far)) == (0, {}, there)


# failures.md: left-on-node
def test_a_node_that_is_gone_is_reported(bring, home):
    """The outcome for a dead node says that it is gone and leaves the number of files unknown."""
    outcome = bring(node="ff" * 28, host="nowhere")

    assert (outcome.error, outcome.left_files, came(home)) == ("the node is gone", None, {})


# failures.md: left-on-node
def test_another_file_of_that_name_is_not_overwritten(bring, home, far):
    """A file in the run folder is not overwritten by one of its name, which stays on the node."""
    (home / TRACE).parent.mkdir(parents=True)
    (home / TRACE).write_text("mine")

    outcome = bring()

    assert f"{TRACE}: another file has its name in the run folder" == outcome.error
    assert ((home / TRACE).read_text(), (far / TRACE).exists()) == ("mine", True)


# failures.md: foreign-files
def test_the_run_folder_itself_is_not_collected(bring, home, far, tmp_path):
    """A node's path that links to the run folder is recognized, and no file is moved."""
    copytree(far, home, dirs_exist_ok=True)
    (home / "manifest" / "driver-0.jsonl").write_bytes(b"".join(map(as_line, beginning())))
    before = files(home)
    (tmp_path / "alias").symlink_to(home)

    outcome = bring(tmp_path / "alias")

    assert (outcome.error, outcome.files) == ("", 0)
    assert before == came(home)


# failures.md: left-on-node
def test_a_capture_that_waits_for_a_salvage_keeps_its_folder(bring, home, far, monkeypatch):
    """A node with a capture to salvage keeps its files; the next collect copies only new ones."""
    there = files(far)
    monkeypatch.setattr(_collect, "Agent", Waits)

    first = bring()
    kept = files(far)
    monkeypatch.setattr(_collect, "Agent", Agent)
    second = bring()

    assert ("salvage" in first.error, first.left_files, kept) == (True, 3, there)
    assert (second.error, second.left_files, second.bytes) == ("", 0, 0)
    assert came(home) == {TRACE: LARGE, SPANS: 0, MANIFEST: 100}
    assert not far.exists()


class Waits(Agent):
    """The agent of a node that has a capture to salvage."""

    def inventory(self, *run):
        return super().inventory(*run)[0], "captures that were not exported: 1; rlprof salvage"


# failures.md: left-on-node
def test_a_file_that_got_shorter_is_left(bring, home, far, monkeypatch):
    """A file that shrinks while it is read stays on the node and gets no name in the run folder."""
    monkeypatch.setattr(_collect, "Agent", Shortens)

    outcome = bring()

    assert f"{TRACE}: its size has changed since" in outcome.error
    assert (came(home), (far / TRACE).stat().st_size) == ({SPANS: 0}, LARGE)


class Shortens(Agent):
    """The agent of a node where a listed file has become empty."""

    def read(self, path, offset):
        return [b""] * PIECES
