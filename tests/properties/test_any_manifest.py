"""Reading a run with damaged files never raises and never claims more than was written."""

import json

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import rlprof
from rlprof.rundir import as_line
from tests.properties.stories import RunOf, Story, claims, event, head, stories

pytestmark = pytest.mark.slow

PROPERTY = settings(max_examples=100, deadline=None)


@pytest.fixture(scope="module", name="folder")
def _folder(tmp_path_factory):
    return RunOf(tmp_path_factory.mktemp("manifests") / "run")


CUTS = st.lists(
    st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=3, max_size=3
)  # the share that is left of each process's two files


def two_artifacts() -> list[Story]:
    """Write an export whose second artifact is partial."""
    key = {"window": {"start_step": 2, "end_step": 3, "phase": "a", "occurrence": 0}, "tool": "t"}
    lines = [*head(0), event("opened", 1, **key), event("closed", 2, **key)]
    for number, status in enumerate(("whole", "partial")):
        made = {"path": str(number), "kind": "files", "format": "x", "status": status}
        lines.append(event("artifact", **key, artifact=made))
    return [Story("actor-0", (*lines, event("exported", 3, **key)), ())]


SIZES = [len(line) for line in two_artifacts()[0].manifest]
BETWEEN = (sum(SIZES[:-2]) + 0.5) / sum(SIZES)
"""The share of the manifest up to the line of its first artifact."""


@PROPERTY
@given(told=stories(), cuts=CUTS)
@example(told=two_artifacts(), cuts=[(BETWEEN, 1.0)] * 3)
def test_cut_files_never_claim_more(folder, told, cuts):
    """A run with files cut anywhere claims no fact that the whole run does not."""
    whole = claims(folder.read(told))
    folder.clear()
    for story, (manifest, spans) in zip(told, cuts, strict=False):
        text, lines = b"".join(story.manifest), b"".join(story.spans)
        folder.write(story, text[: int(manifest * len(text))], lines[: int(spans * len(lines))])

    cut = claims(rlprof.read(folder.path))

    assert cut <= whole


NEW = st.dictionaries(
    st.text(max_size=5).map("x{}".format), st.none() | st.integers() | st.lists(st.text(max_size=3))
)
INSIDE = ("target", "here", "window", "artifact")


def told_more(line: bytes, draw) -> bytes:
    """Add unknown fields to the objects of a line of a manifest."""
    record = json.loads(line)
    for name in INSIDE:
        if isinstance(record.get(name), dict):
            record[name] = dict(draw(st.permutations([*record[name].items(), *draw(NEW).items()])))
    return as_line(record)


@PROPERTY
@given(data=st.data(), told=stories())
def test_unknown_fields_inside_objects_change_nothing(folder, data, told):
    """Unknown fields inside a target, process, window or artifact change nothing."""
    expected = claims(folder.read(told))
    folder.clear()
    for story in told:
        folder.write(story, b"".join(told_more(line, data.draw) for line in story.manifest))

    run = rlprof.read(folder.path)

    assert expected == claims(run)
    assert run.problems == folder.read(told).problems


@PROPERTY
@given(data=st.data(), told=stories())
def test_a_run_with_overwritten_bytes_is_read(folder, data, told):
    """A run with overwritten bytes is read, without invented processes or empty whole captures."""
    expected = claims(folder.read(told))
    opened = {fact for fact in expected if fact[0] == "process"}
    folder.clear()
    for story in told:
        texts = [b"".join(story.manifest), b"".join(story.spans)]
        for place, text in enumerate(texts):
            for _ in range(data.draw(st.integers(0, 3))):
                at = data.draw(st.integers(0, len(text)))
                new = data.draw(st.binary(max_size=6))
                texts[place] = texts[place][:at] + new + texts[place][at + len(new) :]
        folder.write(story, *texts)

    run = rlprof.read(folder.path)

    assert {fact for fact in claims(run) if fact[0] == "process"} <= opened
    for capture in run.captures:
        assert capture.state not in ("whole", "partial") or capture.artifacts
