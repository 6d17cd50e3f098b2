"""How signatures are kept."""

import pytest

from tests.ray_fleet import signatures as ray
from tests.sglang_adapter import signatures as sglang
from tests.signatures.record import laid_out
from tests.vllm_adapter import signatures as vllm


@pytest.mark.parametrize("kept", [ray, sglang, vllm], ids=["ray", "sglang", "vllm"])
def test_no_address_is_kept(kept):
    """A wheel is known by its name and its checksum, wherever it comes from."""
    text = kept.RECORD.file.read_text(encoding="utf-8")

    assert "://" not in text
    found = kept.RECORD.kept()
    assert text == laid_out(found) + "\n"
    for release, said in found.items():
        name, _, version = release.partition("==")
        assert said["wheel"].startswith(f"{name.replace('-', '_')}-{version}-")
        assert len(bytes.fromhex(said["sha256"])) == 32
