"""`rlprof check` on a config of verl's."""

import json
import sys
from pathlib import Path

from rlprof.distributions import how_to_install
from rlprof_cli import main
from tests.verl.test_translate import ACTOR, COMPOSED

GRPO = str(Path(__file__).parent.parent.parent / "examples/verl/grpo.yaml")


def test_it_says_which_lines_a_config_lacks(capsys):
    """`rlprof check` lists the overrides that a verl config lacks, and what it would record."""
    code = main(["check", GRPO])

    told = capsys.readouterr().out.splitlines()
    assert code == 0
    assert f"    {ACTOR}.enable=true" in told
    assert "  actor: torch" in told
    assert any(line.startswith("  rollout: engine vllm (inside it: torch") for line in told)


def test_with_the_overrides_no_line_is_lacking(capsys):
    """With the overrides a composed config has no faults, and each role its tools."""
    asked = ["global_profiler.tool=rlprof", "global_profiler.steps=[3]", f"{ACTOR}.enable=true"]

    code = main(["check", COMPOSED, *asked, "--json"])

    found = json.loads(capsys.readouterr().out)
    assert (code, found["faults"]) == (0, [])
    assert "overrides" not in found
    assert found["roles"] == {"actor": ["torch"], "agent": [], "rollout": ["vllm"]}


def test_a_converted_config_is_one_of_rlprof(capsys, tmp_path):
    """A converted config passes `check` with the same roles, and is not converted again."""
    main(["check", GRPO, "--convert", "global_profiler.steps=[3]"])
    file = tmp_path / "profile.yaml"
    file.write_text(capsys.readouterr().out)

    code = main(["check", str(file), "--json"])

    assert code == 0
    assert set(json.loads(capsys.readouterr().out)["roles"]) == {"actor", "agent", "rollout"}
    assert main(["check", str(file), "--convert"]) == 1
    assert f"{file}: is a config of rlprof" in capsys.readouterr().err


def test_plan_refuses_a_config_of_verl_with_a_remedy(capsys, monkeypatch):
    """`plan` names the conversion; `check` names rlprof-verl where that is not installed."""
    assert main(["plan", GRPO]) == 1
    assert f"rlprof check {GRPO} --convert > profile.yaml" in capsys.readouterr().err

    monkeypatch.setitem(sys.modules, "rlprof_verl", None)
    assert main(["check", COMPOSED]) == 1
    assert how_to_install("rlprof-verl") in capsys.readouterr().err
