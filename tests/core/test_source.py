from pathlib import Path
from textwrap import dedent

import pytest
from omegaconf import OmegaConf

import rlprof
from rlprof.config import load_config
from rlprof.errors import ConfigError


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "profile.yaml"


def faults_in(config: object) -> str:
    """Return the whole error that *config* makes."""
    with pytest.raises(ConfigError) as error:
        load_config(config)
    return str(error.value)


def faults_of(file: Path, text: str) -> str:
    """Return the whole error that *text* makes, the file's name cut short."""
    file.write_text(dedent(text), encoding="utf-8")
    return faults_in(file).replace(str(file), "FILE")


def test_what_is_no_source_is_refused(file, tmp_path):
    """It says what a config may be; a folder, and a file that is no text, are told apart."""
    for value, what in ((3, "int"), ([], "list")):
        message = f"expected a mapping, a YAML file or an OmegaConf node, got {what}"
        assert f"config: 1 fault\n  config: {message}" == faults_in(value)
    assert f"{tmp_path}: cannot be read: Is a directory" in faults_in(tmp_path)
    file.write_bytes(b"tool: \xff")
    assert f"{file}: cannot be read: 'utf-8' codec can't decode byte 0xff" in faults_in(file)


def test_keys_given_twice_are_faults(file):
    """YAML readers silently take the last of two; here both lines are named, at every depth."""
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
    """What YAML offers for not repeating oneself works, for one key over another too."""
    file.write_text(
        dedent("""\
            tool: torch
            roles:
              actor: &all {ranks: all, phases: [gen]}
              critic: {<<: *all, phases: [update]}
              judge: *all
        """)
    )

    roles = load_config(file).roles

    assert (roles["critic"].ranks, roles["critic"].phases) == (None, ("update",))
    assert roles["actor"] == roles["judge"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: b: c", "FILE:1:5: is not YAML: mapping values are not allowed here"),
        (
            "a: !!python/name:os.system ''",
            ("FILE:1:4: is not YAML: could not determine a constructor for the tag "
            "'tag:yaml.org,2002:python/name:os.system'"),
        ),
        ("a: *nope", "FILE:1:4: is not YAML: found undefined alias 'nope'"),
        ("a: 2024-13-45", "FILE: is not YAML: ValueError: month must be in 1..12"),
        ("- 1", "FILE: expected keys and values, got [1]"),
    ],
    ids=["colon", "python", "alias", "date", "list"],
)  # fmt: skip
def test_broken_yaml_is_one_fault(text, message, file):
    """Whatever PyYAML raises becomes a fault with its line and column, if it has them."""
    assert f"FILE: 1 fault\n  {message}" == faults_of(file, text)


def test_a_missing_file_says_that_a_variable_names_it(tmp_path, monkeypatch):
    """Without a config in the code, the message says where the name came from."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RLPROF_CONFIG", "p.yaml")

    with pytest.raises(ConfigError, match="RLPROF_CONFIG names it"):
        rlprof.open(role="actor")


def test_interpolations_are_resolved(monkeypatch):
    """A node of a bigger Hydra config sees all of it, and the environment."""
    monkeypatch.setenv("SCRATCH", "/local")
    whole = OmegaConf.create(
        {
            "trainer": {"dir": "/shared", "last": 7},
            "profile": {
                "run_dir": "${trainer.dir}/profile",
                "scratch_dir": "${oc.env:SCRATCH}",
                "tool": "torch",
                "steps": [2, "${trainer.last}"],
                "roles": {"actor": {"ranks": "all"}, "critic": "${.actor}"},
            },
        }
    )

    config = load_config(whole.profile)

    assert (config.run_dir, config.scratch_dir) == ("/shared/profile", "/local")
    assert (str(config.steps), config.roles["critic"].ranks) == ("2, 7", None)


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"run_dir": "${nope}"}, "run_dir: Interpolation key 'nope' not found; repair it"),
        ({"scratch_dir": "${oc.env:RLPROF_NO_SUCH}"}, "scratch_dir: KeyError raised while resolv"),
        ({"strict": "???"}, "strict: Missing mandatory value: strict; repair it"),
        ({"roles": {"actor": {"ranks": [0, "???"]}}}, "roles.actor.ranks[1]: Missing mandatory"),
    ],
    ids=["nowhere", "environment", "missing", "inside"],
)
def test_what_omegaconf_cannot_resolve_is_one_fault(wrong, told):
    """Where a value is missing or points to nowhere, its path is named, and what to do."""
    (_, line) = faults_in(OmegaConf.create({"tool": "torch", **wrong})).splitlines()

    assert line.startswith(f"  config: {told}")
