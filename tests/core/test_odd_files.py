"""What somebody else has put into a run folder: told and passed over, and nobody waits for it."""

from __future__ import annotations

import os
import signal
import socket
import threading

import pytest

import rlprof
from rlprof import Artifact, control
from rlprof.errors import ConfigError, RunError
from rlprof.rundir import as_line, join, open_regular, read_regular
from rlprof.rundir._files import MOST
from rlprof.session.export_process import export
from rlprof.types import Target
from rlprof_cli import main
from rlprof_run._lines import read_lines

ODD = {
    "fifo": "is a FIFO, not a file",
    "device": "is a device, not a file",
    "folder": "is a folder, not a file",
    "socket": "is a socket, not a file",
    "dangling": "is a link to nothing",
    "loop": "cannot be looked at: Too many levels of symbolic links",
}


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


def put(kind, path):
    """Make something odd at *path*."""
    path.parent.mkdir(exist_ok=True)
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "folder":
        path.mkdir()
    elif kind == "socket":
        os.chdir(path.parent)  # a socket's path is short
        with socket.socket(socket.AF_UNIX) as one:
            one.bind(path.name)
    elif kind == "dangling":
        path.symlink_to("nowhere")
    elif kind == "loop":
        path.symlink_to(path.name)
    elif kind == "sparse":
        with path.open("wb") as file:
            file.truncate(8 << 30)


# failures.md: passed-over
@pytest.mark.slow
@pytest.mark.parametrize("kind", ODD)
@pytest.mark.parametrize("place", ["manifest", "spans"])
def test_what_is_no_file_is_told_and_passed_over(run, monkeypatch, capsys, place, kind):
    """All else is read, by every command."""
    monkeypatch.chdir(run)
    put(kind, run / place / "odd.jsonl")

    codes = [main([*argv, str(run)]) for argv in (["ls"], ["salvage"], ["export"])]

    found = rlprof.read(run)
    assert codes == [0, 0, 0]
    assert (f"{place}/odd.jsonl: {ODD[kind]}; passed over",) == found.problems
    assert f"{place}/odd.jsonl: {ODD[kind]}" in capsys.readouterr().out
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


@pytest.mark.slow
def test_a_folder_of_files_that_cannot_be_listed_is_told(run):
    """A manifest folder that is none is a problem of the run."""
    (run / "manifest").rename(run / "kept")
    (run / "manifest").write_text("")

    assert rlprof.read(run).problems == ("manifest: cannot be read: Not a directory",)


# failures.md: passed-over
@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("fifo", "is a FIFO, not a file"),
        ("device", "is a device, not a file"),
        ("sparse", "is larger than 16384 KiB"),
    ],
)
def test_a_header_that_is_no_file_is_refused(run, capsys, kind, words):
    """Nobody waits for it: the run is named unreadable, and no rank joins it."""
    (run / "run.json").unlink()
    put(kind, run / "run.json")

    with pytest.raises(RunError, match=words):
        rlprof.read(run)
    code = main(["ls", str(run.parent)])

    with pytest.raises(RunError, match="rank 0 has opened no run"):
        join(run.parent, Target("actor", 1, 2), {}, env={}, wait_s=0)
    assert code == 0
    assert "unreadable" in capsys.readouterr().out


# failures.md: passed-over
@pytest.mark.slow
@pytest.mark.parametrize("kind", ["fifo", "device"])
def test_an_artifact_that_is_no_file_any_more_is_told(run, kind):
    """The run says what it is instead."""
    (artifact,) = rlprof.read(run).captures[0].artifacts
    (run / artifact.path).unlink()
    put(kind, run / artifact.path)

    assert (f"{artifact.path}: {ODD[kind]}",) == rlprof.read(run).problems


class MakesAFifo:
    """A tool."""

    @rlprof.hookimpl
    def export(self, out):
        """Name a FIFO as what was recorded."""
        os.mkfifo(out / "odd")
        return [Artifact("odd", "files", "text")]


# failures.md: export-failed
def test_an_artifact_that_is_none_fails_its_export(tmp_path):
    """A tool that names a FIFO is told so; its export does not wait for somebody to write."""
    who = {"role": "actor", "rank": 0, "world_size": 1}
    capture = {
        "tool": "odd", "target": who, "window": {"start_step": 1, "end_step": 2}, "kind": "tool",
        "run_id": "a-run", "host": "here", "pid": 1, "options": {},
        "plugin": f"{__name__}:{MakesAFifo.__name__}",
    }  # fmt: skip
    (tmp_path / "capture.json").write_bytes(as_line(capture))

    export(tmp_path, tmp_path / "out", tmp_path)

    told = (tmp_path / "exported.json").read_text()
    assert '"artifacts": []' in told
    assert "'odd'" in told


# failures.md: passed-over
@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("fifo", "is a FIFO, not a file"),
        ("device", "is a link, not a file"),
        ("folder", "is a folder, not a file"),
        ("sparse", "is larger than 64 KiB"),
    ],
)
def test_a_request_that_is_no_file_stops_nothing(config, caplog, kind, words):
    """It is refused in the log, and the request after it is served."""
    with rlprof.open(config(steps="none")) as prof:
        put(kind, prof.run_dir / "requests" / "a.json")
        control.write(prof.run_dir, control.Request(id="b", role="actor"))
        for _ in range(500):
            prof.scribe.hurry()
            threading.Event().wait(0.01)
            if rlprof.read(prof.run_dir).answers:
                break
        prof.step(1)
        with prof.phase("update"):
            pass

    (answer,) = rlprof.read(prof.run_dir).answers
    assert (answer.id, answer.state) == ("b", "served")
    assert [m for m in caplog.messages if f"a.json: cannot be read: {words}" in m] != []


# failures.md: passed-over
def test_a_request_longer_than_one_may_be_is_refused(tmp_path):
    """It would be in the memory of every process, and in every manifest."""
    file = tmp_path / "big.json"
    file.write_bytes(b'{"id":"big","role":"actor","by":"%s"}' % (b"x" * (64 << 10)))

    with pytest.raises(ConfigError, match=r"big\.json: cannot be read: is larger than 64 KiB"):
        control.read(file)


# failures.md: passed-over
@pytest.mark.slow
def test_a_line_without_end_is_passed_over_in_pieces(tmp_path):
    """What is far longer than any line of ours is not taken into memory; lines after it are."""
    file = tmp_path / "manifest" / "odd.jsonl"
    file.parent.mkdir()
    with file.open("wb") as stream:
        stream.write(b'{"a":1}\n')
        stream.seek(3 * MOST, os.SEEK_CUR)
        stream.write(b'\n{"b":2}\n')
    problems: list[str] = []

    found = list(read_lines(file, problems))

    assert found == [{"a": 1}, {"b": 2}]
    assert problems == ["manifest/odd.jsonl: 1 oversized (> 16 MiB) line skipped"]


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
