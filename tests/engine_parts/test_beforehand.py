"""What is said of an engine's options before there is an engine."""

from __future__ import annotations

import pytest

from rlprof_engine.beforehand import beyond_known, cannot_be_written


def test_a_folder_is_tried_and_nothing_of_it_is_left(tmp_path):
    """With the parents it needs; what was there before stays."""
    there = tmp_path / "there"
    there.mkdir()

    assert [cannot_be_written(there), cannot_be_written(there / "a" / "b")] == ["", ""]
    assert list(tmp_path.rglob("*")) == [there]


@pytest.mark.parametrize(
    ("version", "is_newer"),
    [("0.5.9", False), ("0.5.23.post1", False), ("0.6", True), ("of unknown version", False)],
)
def test_a_release_newer_than_the_newest_known_is_warned_of(version, is_newer):
    """Releases compare by number, and one without a number is not judged."""
    assert [one.level for one in beyond_known(version, "0.5.23")] == ["warning"] * is_newer
