"""How signatures are kept and checked, and what is told when a wheel cannot be had."""

from __future__ import annotations

import json
import subprocess
import zipfile
from contextlib import contextmanager

import pytest

from tests.sglang_adapter import signatures as sglang
from tests.signatures import wheels
from tests.signatures.record import Record, laid_out
from tests.vllm_adapter import signatures as vllm


@pytest.fixture(name="index")
def _index(tmp_path, monkeypatch):
    """Return what an index holds: requirement → the sha256 it states; "": that of the wheel."""
    held = {}

    def stated(requirement):
        if requirement == "engine" and held:
            requirement = max(held)
        if requirement not in held:
            raise wheels.NotHad(f"{requirement}: pip install: ERROR: No matching distribution")
        with fetched(requirement) as file:
            return file.name, held[requirement] or wheels.sha256(file)

    @contextmanager
    def fetched(requirement):
        file = tmp_path / f"{requirement.replace('==', '-')}-py3-none-any.whl"
        word = "grüße" if requirement < "engine==1.2" else "viele grüße"
        with zipfile.ZipFile(file, "w") as packed:
            packed.writestr(zipfile.ZipInfo("engine/core.py"), f"WORD = '{word}'\n")
            packed.writestr(zipfile.ZipInfo("engine/weights.bin"), b"\xff\xff")
        yield file

    monkeypatch.setattr(wheels, "stated", stated)
    monkeypatch.setattr(wheels, "fetched", fetched)
    return held


@pytest.fixture(name="record")
def _record(tmp_path):
    """A record that keeps the sources as they are."""
    return Record(tmp_path / "kept.json", ("engine==1.0",), lambda sources: {"said": sources})


def ask(record, *words):
    """Run the command."""
    return record.main("tests.engine.signatures", "About.", list(words))


def test_a_refresh_writes_what_it_read_and_goes_on_after_what_it_could_not_have(
    index, record, capsys
):
    """A line for each release; the exit status says that one of them is missing."""
    index["engine==1.0"] = ""

    code = ask(record, "--refresh", "engine==0.9", "engine==1.0")

    kept = record.kept()
    assert code == 1
    assert list(kept) == ["engine==1.0"]
    assert kept["engine==1.0"]["wheel"] == "engine-1.0-py3-none-any.whl"
    assert len(kept["engine==1.0"]["sha256"]) == 64
    assert kept["engine==1.0"]["said"] == {"engine/core.py": "WORD = 'grüße'\n"}
    assert capsys.readouterr().err.splitlines() == [
        "[1/2] engine==0.9: cannot be had: pip install: ERROR: No matching distribution",
        "[2/2] engine==1.0: engine-1.0-py3-none-any.whl",
    ]


def test_a_wheel_that_is_not_the_stated_one_is_not_read(index, record, capsys):
    """Its checksum is computed, and compared with what the index says."""
    index["engine==1.0"] = "0" * 64

    assert ask(record, "--refresh") == 1
    assert "is not the file the index states" in capsys.readouterr().err
    assert not record.file.exists()


def test_a_check_compares_with_the_index(index, record, capsys):
    """A wheel that was replaced, and one that was never read, are told; nothing is written."""
    index["engine==1.0"] = ""
    ask(record, "--refresh")
    before = record.file.read_bytes()
    capsys.readouterr()

    well = ask(record, "--check", "engine==1.0")
    index["engine==1.0"] = "1" * 64
    code = ask(record, "--check", "engine==1.0", "engine==2.0")

    assert (well, code) == (0, 1)
    assert capsys.readouterr().err.splitlines() == [
        "[1/1] engine==1.0: as it was read",
        "[1/2] engine==1.0: the index has another wheel; run --refresh",
        "[2/2] engine==2.0: was never read; run --refresh",
    ]
    assert before == record.file.read_bytes()


def test_a_wheel_the_index_no_longer_has_is_told(index, record, capsys):
    """It cannot be compared, nor can the newest, so the check has not passed."""
    index["engine==1.0"] = ""
    ask(record, "--refresh")
    index.clear()
    capsys.readouterr()

    assert ask(record, "--check") == 1
    assert capsys.readouterr().err.splitlines() == [
        "[1/1] engine==1.0: cannot be had: pip install: ERROR: No matching distribution",
        "[1/1] engine: cannot be had: pip install: ERROR: No matching distribution",
    ]


@pytest.mark.parametrize(
    ("newest", "outcome"),
    [
        ("1.0", (0, "is known")),
        ("1.1", (0, "is known")),
        ("1.2", (1, "says what no other does; add it, run --refresh")),
    ],
)
def test_a_check_of_all_reads_the_newest_release(index, record, capsys, newest, outcome):
    """One that says the same as another is well; one that says something else is not."""
    index["engine==1.0"] = ""
    ask(record, "--refresh")
    before = record.file.read_bytes()
    index[f"engine=={newest}"] = ""
    capsys.readouterr()

    code = ask(record, "--check")

    told = capsys.readouterr().err.splitlines()[-1].removeprefix(f"[1/1] engine=={newest}, ")
    assert (code, told) == (outcome[0], f"the newest: {outcome[1]}")
    assert before == record.file.read_bytes()


def test_what_fits_on_a_line_stands_on_one():
    """Only what is wider is opened, from the outside."""
    words = [f"a word of {number}" for number in range(8)]
    value = {"short": {"a": [1, 2]}, "empty": {}, "long": {"words": words, "a": None}}

    text = laid_out(value)

    assert json.loads(text) == value
    assert text.splitlines()[:4] == [
        "{", ' "short": {"a": [1, 2]},', ' "empty": {},', ' "long": {'
    ]  # fmt: skip
    assert max(map(len, text.splitlines())) < 100


def test_every_python_asks_for_the_same_wheel(monkeypatch):
    """A release may have one for each: the one that was read is of a fixed Python and machine."""
    asked = []

    def run(command, **_):
        asked.append(command)
        raise subprocess.TimeoutExpired(command, 1)

    monkeypatch.setattr(subprocess, "run", run)
    with pytest.raises(wheels.NotHad) as raised:
        wheels.stated("engine==1.0")
    with pytest.raises(wheels.NotHad), wheels.fetched("engine==1.0"):
        pass

    assert str(raised.value) == "engine==1.0: pip install took more than 1200 s"
    for command in asked:
        assert command[command.index("--python-version") + 1] == "3.12"
        assert "manylinux_2_34_x86_64" in command
    assert [command[3] for command in asked] == ["install", "download"]


@pytest.mark.parametrize("kept", [vllm, sglang], ids=["vllm", "sglang"])
def test_no_address_is_kept(kept):
    """A wheel is known by its name and its checksum, wherever it comes from."""
    text = kept.RECORD.file.read_text(encoding="utf-8")

    assert "://" not in text
    assert text == laid_out(kept.kept()) + "\n"


def test_no_address_is_told(monkeypatch):
    """What pip says of its index and of this machine's folders stays here."""

    def fail(*_, **__):
        lines = "Looking in\nERROR: cannot reach https://a.host/simple/engine/ or /home/me/it\n"
        raise subprocess.CalledProcessError(1, "pip", stderr=lines)

    monkeypatch.setattr(subprocess, "run", fail)
    with pytest.raises(wheels.NotHad) as raised:
        wheels.stated("engine==1.0")

    assert str(raised.value) == "engine==1.0: pip install: ERROR: cannot reach ... or ..."
