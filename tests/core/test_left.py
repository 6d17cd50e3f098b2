"""Files left on other nodes: what members wrote there and the driver has not collected."""

import os

import attrs
import pytest

import rlprof
from rlprof.rundir import Here, as_line
from tests.core.test_reader import ENDED, OPENED, Folder, beginning, event

FOLDER = "/local/8a1d0c44/a-run"
PLACE = {"node": "8a1d", "host": "node-b", "folder": FOLDER}
WRITES = event("elsewhere", target={"role": "actor", "rank": 1, "world_size": 2}, **PLACE)


@pytest.fixture(name="write")
def _write(tmp_path):
    """Return a function that writes a manifest of a run, and reads the run."""
    folder = Folder(tmp_path, expected={"actor": "all", "ref": "all"})

    def write(*lines, name="driver-0"):
        folder.write(*lines, name=name)
        return folder.read()

    return write


def collected(at, **more):
    said = {"realtime_ns": at, "files": 1, "bytes": 2, "of": "driver-0"}
    said |= {"left_files": 0, "left_bytes": 0, "error": ""}
    return event("collected", **PLACE, **said | more)


def test_the_latest_collection_counts(write, shell):
    """`ls` reports the files left by the latest collection and its error, until none are left."""
    assert write(*beginning(), WRITES).left == ()  # its members still write there
    write(*beginning(), WRITES, ENDED)
    tried = collected(1, left_files=12, left_bytes=2_100_000_000, error="the node is gone")

    run = write(tried, name="+collect-node-a-2")
    (_, told, _), had = shell("ls", run.path), write(collected(2), name="+collect-node-a-1")

    assert (
        "left on other nodes:\n"
        f"  on node-b in {FOLDER}: 12 files, 2.1 GB: the node is gone\n"
        f"  collect it with: rlprof collect {run.path}\n"
    ) in told
    assert had.left == ()


def test_ls_names_the_node_and_folder_to_salvage(write, shell):
    """`ls` names the run folder on the member's node for salvage, not the driver's."""
    there = attrs.evolve(Here.now(), host="node-b", pid=1, started="before it")
    file = write(*beginning(), WRITES, ENDED).path / "manifest" / "actor-0.jsonl"
    file.write_bytes(b"".join(map(as_line, [*beginning(here=there), OPENED])))
    os.utime(file, (1, 1))

    said = f"on node-b; run there: rlprof salvage {FOLDER}\n"
    assert said in shell("ls", file.parents[1])[1]


def attached(role, target_role, rank, world):
    target = {"role": target_role, "rank": rank, "world_size": world}
    return event("attached", role=role, target=target, ranks=[rank])


def test_a_member_that_writes_on_its_own_node_is_not_missing(write, tmp_path, shell):
    """A member that writes on its own node is missing under none of its roles."""
    posts = [attached("actor", "actor", rank, 3) for rank in range(3)]
    posts += [attached("ref", "actor", rank, 3) for rank in (1, 2)]

    run = write(*beginning(target=rlprof.Target("driver", 0, 1)), *posts, WRITES, ENDED)

    assert [str(one) for one in run.missing] == ["actor 0/3", "actor 2/3", "ref 0/3", "ref 2/3"]
    assert "actor 1/" not in shell("ls", tmp_path)[1]
