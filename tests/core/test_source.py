"""Sources of a config and forms of its steps, and the errors for others."""

import sys
from pathlib import Path
from textwrap import dedent

import pytest
from omegaconf import OmegaConf

import rlprof
from rlprof.config import load_config
from rlprof.errors import ConfigError
from rlprof.schedule import Schedule, parse_steps
from tests.cases import cases, refused


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "profile.yaml"


def faults_of(file: Path, text: str) -> str:
    """Return the whole error message of *text*, with the file's name shortened."""
    file.write_text(dedent(text), encoding="utf-8")
    return refused(ConfigError, load_config, file).replace(str(file), "FILE")


def test_an_invalid_source_is_refused(file, tmp_path):
    """A value that is no config source, a folder and a binary file are refused with the reason."""
    wanted = "config: expected a mapping, a YAML file or an OmegaConf node, got "
    file.write_bytes(b"tool: \xff")
    for value, message in (
        (3, f"{wanted}int"), ([], f"{wanted}list"),
        (tmp_path, f"{tmp_path}: cannot be read: Is a directory"),
        (file, f"{file}: cannot be read: 'utf-8' codec can't decode byte 0xff"),
    ):  # fmt: skip
        assert refused(ConfigError, load_config, value).startswith(message)


def test_keys_given_twice_are_faults(file):
    """A key that is given twice is a fault with both lines, at any depth."""
    text = """\
        tool: torch
        roles:
          actor: {ranks: all, ranks: [0]}
          critic: {}
          actor: {}
        tool: nsys
    """

    expected = """\
        FILE: 3 faults
          FILE:3: roles.actor.ranks: is given twice, on lines 3 and 3; keep one
          FILE:5: roles.actor: is given twice, on lines 3 and 5; keep one
          FILE:6: tool: is given twice, on lines 1 and 6; keep one"""
    assert dedent(expected) == faults_of(file, text)


def test_anchors_and_merges_are_followed(file):
    """A config may use YAML anchors and merges, whose keys it can override."""
    text = """\
        tool: torch
        roles:
          actor: &all {ranks: all, phases: [gen]}
          critic: {<<: *all, phases: [update]}
          judge: *all
    """
    file.write_text(dedent(text))

    roles = load_config(file).roles

    assert (roles["critic"].ranks, roles["critic"].phases) == (None, ("update",))
    assert roles["actor"] == roles["judge"]


@cases(
    "text, message",
    ("a: b: c", "FILE:1:5: is not YAML: mapping values are not allowed here"),
    ("a:\n  b: 1\n c: 2",
     ("FILE:3:2: is not YAML: while parsing a block mapping expected <block end>, but found "
      "'<block mapping start>'; check the indentation")),
    ("a: !!python/name:os.system ''",
     ("FILE:1:4: is not YAML: could not determine a constructor for the tag "
      "'tag:yaml.org,2002:python/name:os.system'")),
    ("a: *nope", "FILE:1:4: is not YAML: found undefined alias 'nope'"),
    ("a: 2024-13-45", "FILE: is not YAML: ValueError: month must be in 1..12"),
    ("- 1", "FILE: expected keys and values, got [1]"),
)  # fmt: skip
def test_broken_yaml_is_one_fault(text, message, file):
    """Broken YAML is one fault, with line and column if PyYAML gives them."""
    assert message == faults_of(file, text)


def test_a_missing_file_that_a_variable_names_is_explained(tmp_path, monkeypatch):
    """The error for a missing file says that RLPROF_CONFIG names it, and what to write."""
    monkeypatch.chdir(tmp_path)
    hints = {"p.yaml": "; give the path of a YAML file", "alwys": "; did you mean 'always'?"}
    for name, hint in hints.items():
        monkeypatch.setenv("RLPROF_CONFIG", name)

        assert f"(RLPROF_CONFIG names it){hint}" in refused(ConfigError, rlprof.open, role="actor")


def test_interpolations_are_resolved(monkeypatch):
    """Interpolations of a Hydra config resolve against the whole config and the environment."""
    monkeypatch.setenv("SCRATCH", "/local")
    whole = OmegaConf.create({
        "trainer": {"dir": "/shared", "last": 7},
        "profile": {
            "run_dir": "${trainer.dir}/profile", "scratch_dir": "${oc.env:SCRATCH}",
            "tool": "torch", "steps": [2, "${trainer.last}"],
            "roles": {"actor": {"ranks": "all"}, "critic": "${.actor}"},
        },
    })  # fmt: skip

    config = load_config(whole.profile)

    assert (config.run_dir, config.scratch_dir) == ("/shared/profile", "/local")
    assert (str(config.steps), config.roles["critic"].ranks) == ("2, 7", None)


@cases(
    "wrong, told",
    ({"run_dir": "${nope}"}, "run_dir: Interpolation key 'nope' not found; repair it"),
    ({"scratch_dir": "${oc.env:RLPROF_NO_SUCH}"}, "scratch_dir: KeyError raised while resolv"),
    ({"strict": "???"}, "strict: Missing mandatory value: strict; repair it"),
    ({"roles": {"actor": {"ranks": [0, "???"]}}}, "roles.actor.ranks[1]: Missing mandatory"),
)
def test_an_unresolved_omegaconf_value_is_one_fault(wrong, told):
    """A value that OmegaConf cannot resolve is one fault with its path."""
    node = OmegaConf.create({"tool": "torch", **wrong})
    assert refused(ConfigError, load_config, node).startswith(f"config: {told}")


@cases(
    "value, chosen, words",
    ([2, 5], {2, 5}, "2, 5"),
    (3, {3}, "3"),
    ("2-4", {2, 3, 4}, "2-4"),
    (" 2 - 4 ", {2, 3, 4}, "2-4"),
    (["2-4", 5, "3-8", 3], {2, 3, 4, 5, 6, 7, 8}, "2-8"),
    ({"every": 10}, {0, 10, 20, 30}, "every 10 from 0"),
    ({"every": 10, "first": 2, "last": 21}, {2, 12}, "every 10 from 2 to 12"),
    ({"every": 1, "first": 38}, {38, 39}, "38-"),
    ("none", set(), "none"),
    (None, set(), "none"),
    ids=str,
)
def test_steps_are_read_in_all_their_forms(value, chosen, words):
    """Steps are read from lists, ranges, both mixed, rules and none, and print in one form."""
    steps = parse_steps(value)

    assert chosen == {step for step in range(40) if step in steps}
    assert words == str(steps)
    assert bool(chosen) is bool(steps)


FORMS = "expected a list like [2, 5], a range like '2-4', {every: 100, first: 2} or none, got "


@cases(
    "value, message",
    ([2.5, "x", 3, -1, "7-3"], FORMS + "2.5, 'x', -1; '7-3' ends before it begins; write '3-7'"),
    ("all", FORMS + "'all'; did you mean {every: 1}?"),
    ("2, 4-5", FORMS + "'2, 4-5'; did you mean [2, 4-5]?"),
    ({}, "every is missing; a rule has every, first, last: {every: 100, first: 2}"),
    ({"every": 2, "frist": 1}, "unknown key 'frist'; a rule has every, first, last"),
    ({"every": 0}, "every: expected at least 1, got 0"),
    ({"every": 2, "first": 5, "last": 4}, "last 4 lies before first 5; no step is chosen"),
    ids=str,
)
def test_invalid_steps_are_refused(value, message):
    """Steps that are no number, range or rule are refused with the expected form."""
    assert message == refused(ValueError, parse_steps, value)


def test_a_stretch_may_have_no_end():
    """A rule without `last` makes a window without an end, and is not counted through."""
    steps = parse_steps({"every": 1, "first": 3})

    assert sys.maxsize == steps.stretch_end(5)
    assert Schedule(steps, "continuous", None, join_steps=True).at_step(3).id == "3-"
