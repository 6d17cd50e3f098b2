"""Whatever is given as a config: a Config, or one ConfigError that names every fault."""

from __future__ import annotations

import json

import omegaconf
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from rlprof.config import Config, check_config, load_config
from rlprof.errors import ConfigError
from tests.fakes import tools
from tests.properties.fault_lines import misformed
from tests.properties.planting import (
    SOUND,
    UNKNOWN,
    WRONG,
    WRONG_OPTIONS,
    Plant,
    as_yaml,
    planted,
    plants,
)

pytestmark = pytest.mark.slow

PROPERTY = settings(max_examples=120, deadline=None)
PLANTS = plants()


def error_of(config) -> ConfigError:
    """Return the one error of *config*, whose plugins are the fake ones."""
    tools.register()
    with pytest.raises(ConfigError) as caught:
        check_config(config)
    return caught.value


def outcome(config) -> Config | ConfigError:
    """Check *config*; any other end is a traceback, and fails the test."""
    tools.register()
    try:
        return check_config(config)[0]
    except ConfigError as exc:
        return exc


def assert_sound(result: Config | ConfigError, *, others: bool = False) -> None:
    """Assert that *result* is a config that can be used, or an error of well-formed lines."""
    if isinstance(result, ConfigError):
        assert misformed(result, others=others) == []
        return
    json.dumps(result.as_data(), default=str)
    for role in result.roles:
        result.schedule(role).at_phase(2, "rollout", 0)


# Every fault is found


def test_what_faults_are_planted_into_is_sound():
    """Without a fault planted there is none."""
    tools.register()

    config, uses = check_config(SOUND)

    assert list(config.roles) == ["actor", "critic"]
    assert [use.name for (use,) in uses.values()] == ["fake", "fake"]


def known_keys() -> set[str]:
    """List every key of a config, as its classes have them."""
    config = load_config(SOUND).as_data()
    limits = {f"limits.{key}" for key in config["limits"]}
    return {*config, *limits, *(f"roles.actor.{key}" for key in config["roles"]["actor"])}


def test_no_key_is_left_out():
    """Every key there is has values that are wrong for it, in `planting.py`."""
    assert known_keys() - set(WRONG) == set()


@pytest.mark.parametrize("path", sorted({**WRONG, **WRONG_OPTIONS}))
def test_every_wrong_value_of_every_key_is_one_fault(path):
    """Alone, a value of another type or out of bounds is told once, under the path of its key."""
    for value in {**WRONG, **WRONG_OPTIONS}[path]:
        error = error_of(planted([Plant(path, value)]))

        (fault,) = error.faults
        where, _, words = fault.removeprefix("config: ").partition(": ")
        assert where.partition("[")[0] == path, fault
        assert words
        assert misformed(error) == []


@pytest.mark.parametrize("path", UNKNOWN)
def test_a_key_that_means_nothing_is_one_fault_at_every_level(path):
    """Whatever level a key is misspelt at, it is told under its path."""
    (fault,) = error_of(planted([Plant(path, 1)])).faults

    assert fault.startswith(f"config: {path}: unknown key")


@st.composite
def several(draw) -> list[Plant]:
    """Draw faults that do not hide each other, no two in one place."""
    drawn = draw(st.lists(st.sampled_from(PLANTS), min_size=1, max_size=9))
    chosen: list[Plant] = []
    for plant in drawn:
        if not any(plant.hides(other) or other.hides(plant) for other in chosen):
            chosen.append(plant)
    assume(len({plant.path for plant in chosen}) == len(chosen))
    return chosen


def paths_of(error: ConfigError) -> list[str]:
    """Return the path of the key each fault is about."""
    told = [fault.removeprefix(error.source).partition(": ")[2] for fault in error.faults]
    return sorted({text.partition(": ")[0].partition("[")[0] for text in told})


@PROPERTY
@given(several())
def test_all_planted_faults_of_a_mapping_are_told(chosen):
    """However many independent faults there are, one error names them all, and no other."""
    error = error_of(planted(chosen))

    assert sorted(plant.path for plant in chosen) == paths_of(error)
    assert len(error.faults) == len(chosen)
    assert misformed(error) == []


@pytest.fixture(scope="module", name="file")
def _file(tmp_path_factory):
    """A file that is written again and again."""
    return tmp_path_factory.mktemp("yaml") / "profile.yaml"


@PROPERTY
@given(several(), st.lists(st.integers(0, 3), min_size=1, max_size=9))
def test_all_planted_faults_of_a_file_are_told_with_their_lines(file, chosen, gaps):
    """In a file each stands under the line its key was written on, in the file's order."""
    text, where = as_yaml(planted(chosen), gaps)
    file.write_text(text)

    error = error_of(file)

    expected = sorted((where[plant.path], plant.path) for plant in chosen)
    told = [fault.removeprefix(f"{file}:").split(": ", 2)[:2] for fault in error.faults]
    assert expected == [(int(line), path.partition("[")[0]) for line, path in told]
    assert misformed(error) == []


@PROPERTY
@given(several())
def test_all_planted_faults_of_a_node_are_told(chosen):
    """A node of OmegaConf is a mapping like any other."""
    data = planted(chosen)
    assume(all(type(plant.value) is not int or plant.value < 2**63 for plant in chosen))

    error = error_of(omegaconf.OmegaConf.create(data))

    assert sorted(plant.path for plant in chosen) == paths_of(error)
    assert misformed(error) == []


# Anything at all

PRINTABLE = st.text(st.characters(codec="utf-8", categories=["L", "N", "P", "S"]), max_size=8)
HUGE = (
    st.sampled_from([2**63, -(2**63), 10**400])
    | st.builds(lambda: 16**5000)  # Python does not write it, and hypothesis must not either
)
SCALAR = (
    st.none() | st.booleans() | st.integers() | HUGE | st.floats() | st.text(max_size=6)
    | st.sampled_from(["all", "none", "2-4", "4GB", "discrete", "continuous", "fake", "torch"])
)  # fmt: skip
WORDS = sorted({
    part for path in (*WRONG, *WRONG_OPTIONS) for part in path.split(".")
} | {"save_path", "every", "first", "last", "contents", "torch", "<<", "schedule"})  # fmt: skip
KEY = st.sampled_from(WORDS) | PRINTABLE
TREE = st.recursive(
    SCALAR,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEY, inner, max_size=5),
    max_leaves=14,
)


@st.composite
def merged(draw):
    """Draw a sound config with drawn data in some places of it."""
    chosen: list[Plant] = []
    for path in draw(st.lists(st.sampled_from(sorted(WRONG)), max_size=4)):
        plant = Plant(path, draw(TREE))
        if not any(plant.hides(other) or other.hides(plant) for other in chosen):
            chosen.append(plant)
    return planted(chosen)


class Document:
    """Writes data as YAML with anchors, aliases, merges and tags put in by chance."""

    TAGS = ("!!str", "!!int", "!!float", "!!bool", "!!null", "!!timestamp", "!!binary", "!!set",
            "!!omap", "!!pairs", "!!map", "!!seq", "!local", "!!python/object:os.system",
            "!<tag:yaml.org,2002:int>", "!")  # fmt: skip

    def __init__(self, draw) -> None:
        self.draw = draw
        self.anchors = 0

    def text(self, value) -> str:
        """Write *value* in flow style, which may stand anywhere."""
        chance = self.draw(st.integers(0, 9))
        if chance == 0 and self.anchors:
            return f"*a{self.draw(st.integers(1, self.anchors))}"
        before = ""
        if chance == 1:
            self.anchors += 1
            before = f"&a{self.anchors} "
        if chance == 2:
            before = self.draw(st.sampled_from(self.TAGS)) + " "
        return before + self.plain(value)

    def plain(self, value) -> str:
        if isinstance(value, dict):
            members = [f"{self.plain(key)}: {self.text(item)}" for key, item in value.items()]
            if self.anchors and self.draw(st.integers(0, 4)) == 0:
                members.append(f"<<: *a{self.draw(st.integers(1, self.anchors))}")
            return "{" + ", ".join(members) + "}"
        if isinstance(value, list):
            return "[" + ", ".join(map(self.text, value)) + "]"
        if isinstance(value, int) and abs(value) > 10**4000:
            return "0x" + 300 * "f"
        return json.dumps(value, ensure_ascii=False)


@st.composite
def documents(draw) -> str:
    """Draw a YAML document whose top level is a mapping, mostly."""
    document = Document(draw)
    data = draw(merged() | TREE)
    if not isinstance(data, dict):
        return document.text(data)
    return "\n".join(f"{document.plain(key)}: {document.text(item)}" for key, item in data.items())


@PROPERTY
@given(merged() | TREE)
def test_any_data_are_a_config_or_well_formed_lines(data):
    """Nested data of any kind, huge numbers among them, are understood or told line by line."""
    assume(not isinstance(data, str))  # the path of a file

    assert_sound(outcome(data))


@PROPERTY
@given(documents())
def test_any_document_is_a_config_or_well_formed_lines(file, text):
    """Anchors, aliases to themselves, merges and tags of any kind end in a config or in lines."""
    file.write_text(text, encoding="utf-8", errors="surrogatepass")

    assert_sound(outcome(file))


@PROPERTY
@given(st.binary(max_size=60) | st.text(max_size=20).map(lambda text: text.encode("utf-16")))
def test_any_bytes_are_a_config_or_well_formed_lines(file, data):
    """A file may be anything, for instance no text."""
    file.write_bytes(data)

    assert_sound(outcome(file))


INTERPOLATIONS = st.sampled_from([
    "???", "${a}", "${.b}", "${..c}", "${oc.env:RLPROF_NO_SUCH}", "${oc.env:HOME}", "${nope:1}",
    "${run_dir}", "${", "}", "${roles.actor}", "${oc.decode:'[1'}", "$", "\\${a}", "${a}${a}",
])  # fmt: skip
NODE_TREE = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | INTERPOLATIONS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEY, inner, max_size=4),
    max_leaves=10,
)


@PROPERTY
@given(st.dictionaries(KEY, NODE_TREE, max_size=6) | st.lists(NODE_TREE, max_size=3))
def test_any_node_is_a_config_or_well_formed_lines(data):
    """Interpolations to nowhere, to themselves and of no resolver are told like any fault."""
    try:
        node = omegaconf.OmegaConf.create(data)
    except Exception:  # OmegaConf's own
        assume(False)

    assert_sound(outcome(node), others=True)


@pytest.mark.parametrize("thing", [None, 7, 1.5, b"x", [], (), object(), Config, print], ids=repr)
def test_what_is_no_config_is_one_line(thing):
    """Whatever is passed, the error says what is taken."""
    with pytest.raises(ConfigError) as caught:
        load_config(thing)

    assert misformed(caught.value) == []


def test_a_name_of_a_file_that_cannot_be_is_one_line():
    """No text whatever makes a traceback when it is taken for a file's name."""
    for name in ("", "a\0b", "x" * 5000, "\ud800", ".", "/", "no/such/file.yaml"):
        with pytest.raises(ConfigError) as caught:
            load_config(name)

        assert len(caught.value.faults) == 1


@pytest.mark.parametrize("key", ["a\nb", "\x1b[2J", "\ufeff", "k" * 2000])
def test_a_key_that_breaks_a_line_is_shown_as_its_repr(key):
    """What cannot be printed, or is longer than a line, is shown like any value a user wrote."""
    error = error_of({**SOUND, key: 1})

    assert misformed(error) == []


def test_a_value_that_is_no_yaml_is_shown_cut_short(file):
    """A line of an error stays a line, however long the value is that cannot be read."""
    file.write_text(f"steps: !!float 0x{5000 * 'f'}\n")

    assert misformed(error_of(file)) == []


def test_options_of_the_run_are_checked_beside_broken_ones_of_a_role():
    """A role whose own options are no mapping still tells what is wrong with those of the run."""
    error = error_of(
        {
            "tool": "fake",
            "roles": {"actor": {"options": {"fake": None}}},
            "tools": {"fake": {"level": "x"}},
        }
    )

    assert paths_of(error) == ["roles.actor.options.fake", "tools.fake.level"]


def test_an_interpolation_to_nowhere_says_what_to_do():
    """A fault in the words of OmegaConf still says what to do about it."""
    error = error_of(omegaconf.OmegaConf.create({**SOUND, "run_dir": "${nowhere}"}))

    assert misformed(error) == []
