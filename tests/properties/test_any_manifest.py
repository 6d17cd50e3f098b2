"""Whatever became of the files of a run, reading never raises, nor tells more than is there."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import rlprof
from rlprof.rundir import Journal, as_line
from tests.properties.stories import (
    RunOf,
    Story,
    claims,
    event,
    head,
    merges,
    stories,
)

pytestmark = pytest.mark.slow

PROPERTY = settings(max_examples=100, deadline=None)


@pytest.fixture(scope="module", name="folder")
def _folder(tmp_path_factory):
    """A run folder that is written again and again."""
    return RunOf(tmp_path_factory.mktemp("manifests") / "run")


CUTS = st.lists(
    st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=3, max_size=3
)  # of each process' two files: how much is left


def two_artifacts() -> list[Story]:
    """Tell of an export whose second artifact is partial."""
    key = {"window": {"start_step": 2, "end_step": 3, "phase": "a", "occurrence": 0}, "tool": "t"}
    lines = [*head(0), event("opened", 1, **key), event("closed", 2, **key)]
    for number, status in enumerate(("whole", "partial")):
        made = {"path": str(number), "kind": "files", "format": "x", "status": status}
        lines.append(event("artifact", **key, artifact=made))
    return [Story("actor-0", (*lines, event("exported", 3, **key)), ())]


def up_to_the_first_artifact(story: Story) -> float:
    """Say how much of a manifest ends with its last line but two."""
    lines = [len(line) for line in story.manifest]
    return (sum(lines[:-2]) + 0.5) / sum(lines)


BETWEEN = up_to_the_first_artifact(two_artifacts()[0])


@PROPERTY
@given(told=stories(), cuts=CUTS)
@example(told=two_artifacts(), cuts=[(BETWEEN, 1.0)] * 3)
def test_a_cut_of_any_file_says_no_more(folder, told, cuts):
    """However many files end anywhere, what is told was told before, and no state gets better."""
    whole = claims(folder.read(told))
    folder.clear()
    for story, (manifest, spans) in zip(told, cuts, strict=False):
        text, lines = b"".join(story.manifest), b"".join(story.spans)
        folder.write(story, text[: int(manifest * len(text))], lines[: int(spans * len(lines))])

    cut = claims(rlprof.read(folder.path))

    assert cut <= whole


@PROPERTY
@given(data=st.data(), told=stories())
def test_whatever_order_processes_write_in_more_is_told_each_time(folder, data, told):
    """Read while several processes write, a run never takes back what it has told of a file."""
    folder.clear()
    journals = {story.name: Journal(folder.path / "manifest" / f"{story.name}.jsonl")
                for story in told}  # fmt: skip
    tagged = [[story.name.encode() + b" " + line for line in story.manifest] for story in told]
    order = data.draw(merges(tagged))

    before: set[tuple[object, ...]] = set()
    for number, item in enumerate(order):
        name, _, line = item.partition(b" ")
        journals[name.decode()].write([line])
        if number % 4 == 0 or number == len(order) - 1:
            now = claims(rlprof.read(folder.path))
            assert {fact for fact in before - now if fact[0] not in ("whole", "data")} == set()
            before = now
    for journal in journals.values():
        journal.close()

    without_spans = {fact for fact in claims(folder.read(told)) if fact[0] != "span"}
    assert without_spans == before


GARBAGE = st.one_of(
    st.binary(max_size=30).map(lambda data: data.replace(b"\n", b"")),
    st.sampled_from([b"", b"null", b"[]", b"{", b"\0" * 9, b'{"event": null}', b'{"event": 7}',
                     b'{"event": "process", "target": 7}', b'{"event": "clock", "mono": NaN}']),
    st.builds(
        lambda name, value: json.dumps({"event": f"x{name}", "mono": value}).encode(),
        st.text(max_size=5), st.integers(),
    ),
)  # fmt: skip
"""Lines of no version, and of a later one."""


def changed(lines, draw, change) -> bytes:
    """Change some of *lines* one by one."""
    return b"".join(change(line) if draw(st.integers(0, 3)) == 0 else line for line in lines)


@PROPERTY
@given(data=st.data(), told=stories())
def test_lines_that_say_nothing_change_nothing(folder, data, told):
    """Garbage, and events of a later version, between the lines take away and add nothing."""
    expected = claims(folder.read(told))
    folder.clear()
    for story in told:
        folder.write(story, *(
            changed(lines, data.draw, lambda line: line + data.draw(GARBAGE) + b"\n")
            for lines in (story.manifest, story.spans)
        ))  # fmt: skip

    assert expected == claims(rlprof.read(folder.path))


NEW = st.dictionaries(
    st.text(max_size=5).map("x{}".format), st.none() | st.integers() | st.lists(st.text(max_size=3))
)
INSIDE = ("target", "here", "window", "artifact")


def told_more(line: bytes, draw) -> bytes:
    """Add fields nobody knows to what a line of a manifest holds."""
    record = json.loads(line)
    for name in INSIDE:
        if isinstance(record.get(name), dict):
            record[name] = dict(draw(st.permutations([*record[name].items(), *draw(NEW).items()])))
    return as_line(record)


@PROPERTY
@given(data=st.data(), told=stories())
def test_fields_of_a_later_version_inside_others_are_passed_over(folder, data, told):
    """What a later version adds to a target, process, window or file hides no line."""
    expected = claims(folder.read(told))
    folder.clear()
    for story in told:
        folder.write(story, b"".join(told_more(line, data.draw) for line in story.manifest))

    run = rlprof.read(folder.path)

    assert expected == claims(run)
    assert run.problems == folder.read(told).problems
