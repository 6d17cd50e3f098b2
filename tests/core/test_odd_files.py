"""What somebody else has put into a run folder: told and passed over, and nobody waits for it."""

from __future__ import annotations

import os
import signal

import pytest

import rlprof
from rlprof import control
from rlprof.errors import ConfigError
from rlprof.rundir import open_regular, read_regular
from rlprof_cli import main


@pytest.fixture(autouse=True)
def _bounded():
    """Fail instead of waiting for ever."""

    def fail(*_):
        raise TimeoutError("it waits")

    before = signal.signal(signal.SIGALRM, fail)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture(name="run")
def _run(config):
    """A finished run, of one window."""
    with rlprof.open(config(steps=[1])) as prof:
        prof.step(1)
        with prof.phase("update"):
            pass
    return prof.run_dir


# failures.md: passed-over
@pytest.mark.slow
@pytest.mark.parametrize(
    ("place", "make", "words"),
    [("manifest", os.mkfifo, "is a FIFO, not a file"),
     ("spans", lambda path: path.symlink_to("nowhere"), "is a link to nothing")],
    ids=["fifo", "link"],
)  # fmt: skip
def test_what_is_no_file_is_told_and_passed_over(run, capsys, place, make, words):
    """All else is read, by every command."""
    make(run / place / "odd.jsonl")

    codes = [main([*argv, str(run)]) for argv in (["ls"], ["salvage"], ["export"])]

    found = rlprof.read(run)
    assert codes == [0, 0, 0]
    assert found.problems == (f"{place}/odd.jsonl: {words}; passed over",)
    assert f"{place}/odd.jsonl: {words}" in capsys.readouterr().out
    assert [capture.state for capture in found.captures] == ["whole"]
    assert len(list(found.spans())) == 2


# failures.md: passed-over
@pytest.mark.slow
def test_links_to_files_are_read(run, tmp_path):
    """Who keeps the files of a run, or the run itself, elsewhere finds all of it."""
    (manifest,) = (run / "manifest").iterdir()
    manifest.rename(tmp_path / "kept")
    manifest.symlink_to(tmp_path / "kept")
    (tmp_path / "link").symlink_to(run)

    found = rlprof.read(tmp_path / "link")

    assert found.problems == ()
    assert [capture.state for capture in found.captures] == ["whole"]


# failures.md: passed-over
def test_a_request_longer_than_one_may_be_is_refused(tmp_path):
    """It would be in the memory of every process, and in every manifest."""
    file = tmp_path / "big.json"
    file.write_bytes(b'{"id":"big","role":"actor","by":"%s"}' % (b"x" * (64 << 10)))

    with pytest.raises(ConfigError, match=r"big\.json: cannot be read: is larger than 64 KiB"):
        control.read(file)


def test_what_is_read_is_bounded(tmp_path):
    """A file is returned whole or refused; a link only where links are followed."""
    file, link = tmp_path / "file", tmp_path / "link"
    file.write_bytes(b"1234")
    link.symlink_to(file)

    assert read_regular(link, most=4) == b"1234"
    with pytest.raises(OSError, match="is larger than 0 KiB"):
        read_regular(file, most=3)
    with pytest.raises(OSError, match="is a link, not a file"):
        open_regular(link, follow=False)
    with pytest.raises(FileNotFoundError):
        open_regular(tmp_path / "nothing")
