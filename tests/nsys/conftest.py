"""A process with the environment of an nsys session, and the stand-in for nsys."""

import json

import pytest

from rlprof import Target, plugins
from rlprof.config import Faults, structure
from rlprof_nsys import Nsys
from rlprof_nsys._arguments import MARK, Mark
from rlprof_nsys._options import NsysOptions
from tests.fakes import nsys as fake_nsys

SESSION = "rlprof-actor-0-1-0"


@pytest.fixture(name="nsys")
def _nsys(tmp_path):
    return fake_nsys.install(tmp_path / "nsys")


@pytest.fixture(name="inside")
def _inside(nsys, tmp_path, monkeypatch):
    """Put this process into a session of the stand-in, as the launcher does."""
    own = tmp_path / "own"
    own.mkdir()
    mark = Mark(session=SESSION, nsys=nsys.path, folder=str(own), trace="nvtx")
    monkeypatch.setenv(MARK, mark.text())
    monkeypatch.setenv("NSYS_PROFILING_SESSION_ID", "7")
    nsys.session(SESSION)
    return nsys


@pytest.fixture(name="folder")
def _folder(tmp_path):
    folder = tmp_path / "raw"
    folder.mkdir()
    return folder


def notes(folder):
    return json.loads((folder / "nsys.json").read_bytes())


def options(**asked):
    """Structure *asked* as a config's options are."""
    faults = Faults()
    made = structure(NsysOptions, asked, path="", faults=faults)
    assert not faults, faults.found
    return made


def configured(**asked):
    """Return the hooks of a tool that is configured in this process, and the tool."""
    tool = Nsys()
    hooks = plugins.hooks(tool)
    asked = {"start_s": 60, "self_test": False, **asked}
    hooks.configure(place="process", target=Target("actor"), options=options(**asked))
    hooks.tool = tool
    return hooks
