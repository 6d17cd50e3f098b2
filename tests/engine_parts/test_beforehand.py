"""What is said of an engine's options before there is an engine."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlprof_engine.beforehand import beyond_known, cannot_be_written, who_records

PROC = Path("/proc/x")
OWN = "Its own profiler"


@pytest.mark.parametrize(
    ("tools", "way", "is_native", "said"),
    [
        (["torch"], "worker", False, "inside it: torch"),
        (["torch"], "native", False, "Its own profiler records in place of torch"),
        (["torch"], "auto", True, "Its own profiler records in place of torch"),
        ([], "auto", False, "Its own profiler records"),
        (
            ["torch"],
            "auto",
            False,
            "inside it: torch; without rlprof in its workers, Its own profiler records instead",
        ),
        (["torch", "mine"], "auto", False, "inside it: torch, mine"),
    ],
)
def test_who_records_is_said_where_it_is_known(tools, way, is_native, said):
    """Else what it depends on; a torch profiler cannot stand for other tools."""
    found = who_records(tools, way=way, is_native=is_native, profiler=OWN, word="workers")

    assert found == said


def test_a_folder_is_tried_and_nothing_of_it_is_left(tmp_path):
    """With the parents it needs; what was there before stays."""
    there = tmp_path / "there"
    there.mkdir()

    assert [cannot_be_written(there), cannot_be_written(there / "a" / "b")] == ["", ""]
    assert list(tmp_path.rglob("*")) == [there]


def test_a_folder_that_cannot_be_is_told_with_what_to_do(tmp_path):
    """Below a file, and where nobody can make any."""
    (tmp_path / "file").write_text("")

    below, nowhere = (cannot_be_written(one) for one in (tmp_path / "file/x", PROC))

    assert "Not a directory" in below
    assert nowhere.endswith("; name a folder that can be made and written to")


@pytest.mark.parametrize(
    ("version", "is_newer"),
    [("0.5.23", False), ("0.5.9", False), ("0.5.23.post1", False), ("0.6", True), ("1.0rc1", True),
     ("of unknown version", False)],
)  # fmt: skip
def test_a_release_newer_than_the_newest_known_is_warned_of(version, is_newer):
    """Releases compare by number, and one without a number is not judged."""
    assert [one.level for one in beyond_known(version, "0.5.23")] == ["warning"] * is_newer
