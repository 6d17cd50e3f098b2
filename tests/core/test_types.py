from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rlprof
from rlprof.types import Artifact, Capture, Clock, Launch, Target, Window, safe_name

QUICK = settings(max_examples=100, deadline=None)
ANY_TEXT = st.text(st.characters(exclude_categories=[]), max_size=120)


@QUICK
@given(ANY_TEXT)
def test_a_safe_name_is_one_component(name):
    """Whatever a user calls a phase, its folder is one short component that is not hidden."""
    made = safe_name(name)

    assert re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,88}", made)


@QUICK
@given(st.text("abzABZ019_", min_size=1, max_size=80))
def test_a_harmless_name_stays_as_it_is(name):
    """Folders are called what the user called the phase, wherever that can be."""
    assert name == safe_name(name)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("a/b", "a-b"),
        ("a/b", "a b"),
        ("..", "."),
        ("", "x"),
        ("a" * 81, "a" * 82),
        ("é", "è"),
        ("", "x-00000000"),
        ("a/b", "a-b-07f4401c"),
    ],
)
def test_names_that_clean_alike_stay_apart(one, other):
    """Two phases never share a folder because a path cannot hold their names."""
    assert safe_name(one) != safe_name(other)


@pytest.mark.parametrize(
    ("target", "words", "folder"),
    [
        (Target("actor"), "actor 0/1", "actor_0_of_1"),
        (Target("actor", 3, 8), "actor 3/8", "actor_3_of_8"),
        (Target("rollout", replica=2), "rollout replica 2", "rollout_replica_2"),
    ],
    ids=["alone", "rank", "replica"],
)
def test_a_target_is_named_by_role_and_number(target, words, folder):
    """A process is its role and rank, an engine its role and replica."""
    assert words == str(target)
    assert folder == target.folder


@pytest.mark.parametrize(
    ("window", "steps", "name", "folder"),
    [
        (Window(7, 8), "7", "7", "step_000007/step"),
        (Window(7, 10), "7-9", "7-9", "step_000007/step"),
        (Window(7, sys.maxsize), "7-", "7-", "step_000007/step"),
        (Window(7, 8, "update"), "7", "7/update", "step_000007/update"),
        (Window(7, 8, "update", 2), "7", "7/update.2", "step_000007/update.2"),
        (Window(7, 8, "a/b"), "7", "7/a/b", "step_000007/a-b-07f4401c"),
        (Window(7, 8, "step"), "7", "7/step", "step_000007/step-43b9fe3c"),
        (Window(7, 8, "a.1"), "7", "7/a.1", "step_000007/a.1-ec8d7113"),
    ],
    ids=["step", "stretch", "without end", "phase", "again", "unsafe", "ours", "as if again"],
)
def test_a_window_is_named_by_steps_and_phase(window, steps, name, folder):
    """Steps are counted with the last one included, as people say them."""
    assert steps == window.steps
    assert name == window.id
    assert folder == window.folder


@pytest.mark.parametrize(
    ("target", "window", "stem"),
    [
        (Target("actor", 3, 8), Window(7, 8), "actor_rank3-of-8_step7_step_pid42"),
        (
            Target("actor", 3, 8, coordinates={"tp": 1, "p/p": 0}),
            Window(7, 10),
            "actor_rank3-of-8_tp1_p-p-e9a9f8130_step7-9_step_pid42",
        ),
        (
            Target("rollout", replica=2),
            Window(7, 8, "gen", 1),
            "rollout_replica2_step7_gen.1_pid42",
        ),
        (Target("actor"), Window(7, sys.maxsize), "actor_rank0-of-1_step7-_step_pid42"),
    ],
    ids=["rank", "coordinates", "replica", "without end"],
)
def test_a_stem_tells_a_file_from_all_others(target, window, stem):
    """A file that is moved out of its folder still says whose it is."""
    capture = Capture("run", target, window, "torch", host="h", pid=42)

    assert stem == capture.stem


def test_a_header_tells_a_trace_from_all_others():
    """A trace begins with it, in plain data, and names in it are those of the manifest."""
    capture = Capture("run", Target("actor", 1, 2), Window(7, 8, "gen"), "torch", host="h", pid=42)

    assert capture.header == {
        "run": "run",
        "target": {
            "role": "actor", "rank": 1, "world_size": 2, "coordinates": {}, "replica": None,
            "worker": None,
        },
        "window": {"start_step": 7, "end_step": 8, "phase": "gen", "occurrence": 0},
        "tool": "torch",
        "host": "h",
        "pid": 42,
    }  # fmt: skip


@QUICK
@given(role=ANY_TEXT, phase=ANY_TEXT, axis=ANY_TEXT)
def test_a_stem_is_one_component(role, phase, axis):
    """No role, phase or axis of the layout can leave the folder."""
    target = Target(role, coordinates={axis: 0})
    capture = Capture("run", target, Window(0, 1, phase), "torch", host="h", pid=1)

    assert re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._-]*", capture.stem)


@pytest.mark.parametrize(
    "value",
    [
        Target("a"),
        Window(0, 1),
        Clock(1, 2, 3),
        Launch(),
        Artifact("a", kind="files", format="text"),
        Capture("r", Target("a"), Window(0, 1), "t", host="h", pid=1),
    ],
    ids=lambda value: type(value).__name__,
)
def test_words_are_frozen(value):
    """Nobody can change what another room was told."""
    field = attrs.fields(type(value))[0].name

    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        setattr(value, field, None)


def test_every_public_name_is_there():
    """All that `__all__` promises can be had, and `dir` shows it."""
    found = {name: getattr(rlprof, name) for name in rlprof.__all__}

    assert sorted(found) == sorted(rlprof.__all__)
    assert set(rlprof.__all__) <= set(dir(rlprof))


def test_type_checkers_see_the_names_there_are():
    """The stub beside the package promises the same names, and imports each from somewhere."""
    stub = ast.parse(Path(rlprof.__file__).with_suffix(".pyi").read_text())
    imported = {
        alias.asname or alias.name
        for node in stub.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    (promised,) = (
        ast.literal_eval(node.value) for node in stub.body if isinstance(node, ast.Assign)
    )

    assert sorted(promised) == sorted(rlprof.__all__)
    assert set(promised) <= imported
    assert all(hasattr(rlprof, name) for name in imported)


def test_an_unknown_name_is_an_attribute_error():
    """A misspelt name fails as it does in any module."""
    with pytest.raises(AttributeError) as error:
        rlprof.opne  # noqa: B018

    assert str(error.value) == "module 'rlprof' has no attribute 'opne'"


def test_importing_rlprof_imports_nothing_else_of_it():
    """Where rlprof is off its import costs next to nothing: none of its rooms, nothing foreign."""
    code = (
        "import sys; before = set(sys.modules); import rlprof; "
        "new = sorted(set(sys.modules) - before); "
        "print([name for name in new if name.partition('.')[0] not in sys.stdlib_module_names])"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == "['rlprof']\n"
