from __future__ import annotations

from importlib import metadata

import pytest

from rlprof.hookspecs import Recorder
from rlprof.plugins import GROUPS, load, register
from rlprof_cli.offers import offers
from tests.core.distributions import GOOD, install, tool


@pytest.fixture(autouse=True)
def _nothing_by_hand(monkeypatch):
    monkeypatch.setattr("rlprof.plugins._registered", {})


@pytest.mark.parametrize(
    ("requires", "asks"),
    [
        (["rlprof"], "rlprof"),
        (["RLPROF[torch] (>=0.1)"], "RLPROF[torch](>=0.1)"),
        (["rlprof~=0.1; python_version > '3'"],
         "rlprof~=0.1;python_version>'3'"),
        (["rlprof-torch>=1", "rlprofiler"], ""),
        ([], ""),
    ],
    ids=["bare", "extra", "marker", "others", "none"],
)  # fmt: skip
def test_what_a_distribution_asks_of_core_is_read(monkeypatch, tmp_path, requires, asks):
    """However the requirement is written, it is told as it stands."""
    install(monkeypatch, tmp_path, "prof-good", GOOD, tool("good", "Good"), requires=requires)

    (offer,) = [offer for offer in offers() if offer.name == "good"]

    assert offer.requires == asks
    assert str(offer) == "tool 'good' (prof-good 1.0)"


def test_offers_come_by_kind_and_name(monkeypatch, tmp_path):
    """Tools, engines, exporters; each by name; those made by hand among them."""
    text = "[rlprof.exporters]\na={module}:A\n[rlprof.engines]\nb={module}:B\n[rlprof.tools]\n"
    install(monkeypatch, tmp_path, "prof-many", "", text + "z={module}:Z\nc={module}:C\n")
    register("tool", "d", Recorder)

    found = [(offer.kind, offer.name) for offer in offers()]

    ours = [offer for offer in found if len(offer[1]) == 1]
    assert ours == [("tool", "c"), ("tool", "d"), ("tool", "z"), ("engine", "b"), ("exporter", "a")]
    assert found == sorted(found, key=lambda o: (list(GROUPS).index(o[0]), o[1]))


def test_a_distribution_without_a_name_is_shown_as_one(monkeypatch, tmp_path):
    """A folder that lost its METADATA neither hides its plugin nor breaks the list."""
    install(monkeypatch, tmp_path, "prof-bad", GOOD, tool("good", "Good"))
    (tmp_path / "prof_bad-1.0.dist-info" / "METADATA").unlink()

    (offer,) = [offer for offer in offers() if offer.name == "good"]

    assert str(offer) == "tool 'good' (? ?)"
    assert load("tool", "good").__name__ == "Good"


def test_an_entry_of_no_distribution_is_listed(monkeypatch):
    """Import hooks may offer what no distribution stands behind; it is shown, once."""
    entry = metadata.EntryPoint("odd", "prof_odd:X", "rlprof.tools")
    monkeypatch.setattr(
        metadata, "entry_points", lambda group: [entry] if group == entry.group else []
    )

    (offer,) = offers()

    assert str(offer) == "tool 'odd' (? ?)"
