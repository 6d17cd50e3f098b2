"""Every event arrives unchanged from traces of any layout and in batches of any size."""

import gzip
import json
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rlprof_timeline import _events
from rlprof_timeline._inplace import moved_in_place
from rlprof_timeline._place import Place
from rlprof_timeline._tracks import Tracks
from tests.timeline.layouts import LAYOUTS, PREFIX, document, read

TEXT = st.text(st.characters(codec="utf-8", exclude_characters='\\"', exclude_categories=["C"]))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**15) | TEXT,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(TEXT | st.just("name"), inner, max_size=3)
    ),
    max_leaves=6,
)
PIDS = st.sampled_from([0, 1, 7, 42, 4242, 1234567, "Spans", ""])
TIDS = st.sampled_from([0, 7, 4242, 7654321, 140_234_567_890, -1, "Trace"])


@st.composite
def an_event(draw: Any) -> dict[str, Any]:
    """Draw an event like Kineto's, with times in ns."""
    phase = draw(st.sampled_from("XXXXsfi"))
    named = {"cat": draw(TEXT), **({"s": "t"} if phase == "i" else {}), "name": draw(TEXT)}
    event = {"ph": phase, "pid": draw(PIDS), "tid": draw(TIDS), "ts": draw(st.integers(0, 10**16))}
    if phase in "sf":
        event = {"ph": phase, "id": draw(st.integers(0, 2**32)), **event, **named}
    else:
        event = {"ph": phase, **named, **event}
    if phase == "X":
        event["dur"] = draw(st.integers(0, 10**12))
    if phase == "f":
        event["bp"] = "e"
    if draw(st.booleans()):
        event["args"] = draw(st.dictionaries(TEXT, VALUES, max_size=3))
    return event


@pytest.mark.slow
@pytest.mark.parametrize("layout", LAYOUTS)
@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=40
)
@given(
    events=st.lists(an_event(), max_size=12),
    others=st.lists(st.sampled_from([*LAYOUTS]), max_size=3),
    size=st.sampled_from([64, 300, 1 << 20]),
    shift_ns=st.sampled_from([0, 1, -999, 123_456_789_012_345, -(10**9)]),
    is_packed=st.booleans(),
    tail=st.sampled_from(
        ["", ', "traceName": "a}]}"', ',\n "logs": [{"name": "x"}, {"name": "y"}]']
    ),
)
def test_every_event_arrives(layout, tmp_path, *, events, others, size, shift_ns, is_packed, tail):
    """Events of mixed layouts arrive once, in order, and with every digit of their times."""
    ways = [LAYOUTS[other] for other in others] + [LAYOUTS[layout]] * len(events)
    encoded = [way(event) for way, event in zip(ways, events, strict=False)]
    content = document(encoded, {"schemaVersion": 1}, tail)

    given = gzip.compress(content) if is_packed else content
    found, text, place = read(given, tmp_path, size, shift_ns)

    assert (text.problems, text.dropped) == ([], 0)
    assert len(found) == len(events) == place.events
    for event, old in zip(found, events, strict=True):
        expected = old | {"ts": Fraction(old["ts"] + shift_ns, 1000)}
        expected |= {"dur": Fraction(old["dur"], 1000)} if "dur" in old else {}
        expected |= {"id": int(f"{PREFIX}{old['id']}")} if "id" in old else {}
        pid, tid = place.tracks.at(old["pid"], old["tid"])
        assert event == expected | {"pid": pid, "tid": tid}
    assert place.earliest_ns == min((old["ts"] + shift_ns for old in events), default=None)


@pytest.mark.parametrize("layout", ["kineto", "kineto before"])
def test_kinetos_layouts_are_moved_as_by_decoding_each_event(layout, monkeypatch) -> None:
    """Moving events in place gives the events, times and meetings that decoding gives."""
    events: list[dict[str, Any]] = [
        {"ph": "M", "name": "process_name", "pid": 0, "tid": 0, "ts": 0, "args": {"name": "GPU"}}
    ]
    for n in range(300):
        at = {"pid": n % 3 * 4242, "tid": n % 5 * 70_007, "ts": 10 ** (n % 10 + 6) + n * 1_001}
        name = {"cat": "kernel" if n % 2 else "cpu_op"}
        name |= {"name": f"ncclDevKernel_AllReduce_{n % 2}" if n % 7 == 0 else f"op{{{n}}} é"}
        events += [
            {"ph": "X", **name, **at, "dur": n * 999_999, "args": {"pid": n, "ts": 5}},
            {"ph": "sf"[n % 2], "id": n * 10**10, **at, "cat": "ac2g", "name": "ac2g"},
            {"ph": "i", "cat": "memory", "s": "t", "name": "[memory]", **at, "args": {}},
        ]
        if n % 100 == 0:
            events += [{"ph": "X", **name, **at, "pid": "Spans", "dur": 1}, {"ph": "C", **at}]
    many = *(f"op{n}" for n in range(300)), "barrier"  # more than are kept apart, of one layout
    events += [{"ph": "X", "cat": "cpu_op", "name": one, **at, "dur": 1} for one in many]
    batch = ",".join(map(LAYOUTS[layout], events)).encode()
    places = [Place(123_456_789, Tracks("", 100_000, 1), PREFIX) for _ in range(3)]

    texts = [_events._each(batch, places[0])]
    monkeypatch.setattr(_events, "_each", None)  # none of these events needs it
    texts += [_events.moved(batch, places[1]), moved_in_place(batch, places[2])]

    wanted, *found = (
        [event | {"pid": 0, "tid": names[event["pid"], event["tid"]]} for event in json.loads(text)]
        for text, place in zip([b"[%b]" % text for text in texts], places, strict=True)
        for names in [{track[1:3]: track[3] for track in place.tracks.names()}]
    )
    assert found == [wanted, wanted]
    ones = [(one.events, one.earliest_ns, sorted(one.meetings)) for one in places]
    assert ones[0] == ones[1] == ones[2]
    assert len(ones[0][2]) > 40
