"""The files in the wheels, and their metadata."""

from __future__ import annotations

import re
import zipfile
from email import message_from_string
from importlib import metadata

import pytest

from tests.packaging.conftest import ROOT, build

pytestmark = pytest.mark.slow

DRIVEN = {"torch", "torch-npu", "vllm", "sglang", "ray", "verl", "numpy", "omegaconf", "nvidia"}
"""Packages that rlprof profiles or works with, and must never require."""
READS_WITH = {
    "rlprof-timeline": {"msgspec", "numpy"},
    "rlprof-report": {"msgspec", "numpy"},
    "rlprof-testing": {"pytest"},
    "rlprof-bucket": {"fsspec"},
}
"""Requirements besides `LIGHT` of distributions that run outside of training."""
LIGHT = {"rlprof-core", "rlprof-run", "rlprof-live", "rlprof-cli", "rlprof-remote",
         "rlprof-ray", "rlprof-torch", "rlprof-traces", "rlprof-engine", "attrs", "pluggy",
         "pyyaml"}  # fmt: skip
NAMES = ["rlprof-core", *sorted(
    re.search(r'^name = "(.+)"', file.read_text(), re.MULTILINE)[1]
    for file in ROOT.glob("plugins/*/pyproject.toml")
)]  # fmt: skip


@pytest.fixture(params=NAMES, name="dist")
def _dist(request, built):
    """Return each distribution in turn."""
    return built[request.param]


def about(dist):
    """Return the metadata of the wheel of *dist*."""
    with zipfile.ZipFile(dist.wheel) as wheel:
        (name,) = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
        return message_from_string(wheel.read(name).decode())


def requirement(text: str) -> str:
    """Return the package name of a requirement."""
    return re.match(r"[A-Za-z0-9._-]+", text)[0].lower()


def test_a_wheel_holds_the_package_and_nothing_else(dist):
    """A wheel holds exactly the files of its package, and the license."""
    package = dist.package
    with zipfile.ZipFile(dist.wheel) as wheel:
        files = wheel.namelist()
        licenses = [wheel.read(name) for name in files if name.endswith("/LICENSE")]

    mine = [name for name in files if not name.split("/")[0].endswith(".dist-info")]

    assert f"{package}/py.typed" in mine
    assert {package} == {name.split("/")[0] for name in mine}
    source = dist.folder / "src"
    assert sorted(mine) == sorted(
        str(file.relative_to(source)) for file in source.rglob("*") if file.is_file()
    )
    assert dist.wheel.name.endswith("-py3-none-any.whl")
    assert licenses == [(ROOT / "LICENSE").read_bytes()]


def test_the_metadata_of_a_wheel_is_complete_and_light(dist):
    """A wheel requires light packages and our own only; its metadata and README links work."""
    head = about(dist)
    needs = head.get_all("Requires-Dist") or []

    always = {requirement(need) for need in needs if "extra ==" not in need}
    ours = {requirement(need) for need in needs if requirement(need).startswith("rlprof")}

    own = READS_WITH.get(dist.name, set())
    assert always <= LIGHT | own
    # Lower bounds only, so that an installed version is never replaced by an older one.
    bounds = {requirement(need): re.sub(r"^[\w-]+", "", need).strip() for need in needs}
    assert all(re.fullmatch(r">=[\d.]+", bounds[name]) for name in own)
    assert (always - own).isdisjoint(DRIVEN)
    assert ours <= set(NAMES)
    links = re.findall(r"\]\(([^)]+)\)", head.get_payload())
    assert [to for to in links if not re.match("https?:|#", to)] == []
    assert dist.name == head["Name"]
    assert metadata.version("rlprof-core") == head["Version"]
    assert 20 < len(head["Summary"]) < 120
    assert head["License-Expression"] == "Apache-2.0"
    assert head["Requires-Python"] == ">=3.10"


def test_a_release_of_the_product_names_versions(product, source, tmp_path):
    """A release requires its parts from an index; another build requires those of the checkout."""
    (checkout,) = build(tmp_path, source)

    needs, local = (about(one).get_all("Requires-Dist") for one in (product, checkout))

    assert {requirement(need) for need in needs} == {requirement(need) for need in local}
    assert [need for need in needs if "file:" in need] == []
    assert [need for need in local if "file:" not in need] == []
    assert "Private :: Do Not Upload" in about(checkout).get_all("Classifier")
    assert "Private :: Do Not Upload" not in about(product).get_all("Classifier")
