"""Single events on the timeline: how odd ones are shown, and where."""

import json

import pytest

from rlprof_timeline._events import moved
from rlprof_timeline._inplace import moved_in_place
from rlprof_timeline._place import Place
from rlprof_timeline._tracks import Tracks, called
from tests.timeline.layouts import kineto

EPOCH = 1_700_000_000_000_000_000
AT = {"pid": 1, "tid": 1}


def shown(*events, shift_ns=0, **where):
    """Return the events that are shown, and their place."""
    place = Place(shift_ns, Tracks("", 100_000, 1), 123_456, zero_ns=EPOCH, **where)
    text = moved(",".join(map(json.dumps, events)).encode(), place)
    return json.loads(b"[%b]" % bytes(text)), place


@pytest.mark.parametrize("ts", [5, "5"])
def test_invalid_events_are_dropped_and_each_slice_has_a_duration(ts):
    """An event without a valid phase or time is dropped; a slice without a duration lasts 0."""
    odd = [{"ph": 5, "ts": ts}, {"ph": "XX", "ts": ts}, {"ph": "X"}, {"ph": "X", "ts": 10**16}]
    good = [{"ph": "X", "ts": ts}, {"ph": "i", "ts": ts}]

    found, place = shown(*({**AT, **one} for one in [*odd, *good]))

    assert [(one["ts"], one.get("dur")) for one in found] == [(5, 0), (5, None)]
    assert place.untimed == 4


@pytest.mark.parametrize("ts", [EPOCH // 1000 + 1, EPOCH // 1000 + 1.0, str(EPOCH // 1000 + 1)])
def test_large_times_are_moved_to_the_nanosecond(ts):
    """Times since 1970, as an int, a float or text, are moved to the nanosecond."""
    found, place = shown({**AT, "ph": "X", "ts": ts, "dur": 2}, shift_ns=-EPOCH)

    assert [(one["ts"], one["dur"]) for one in found] == [(1, 2)]
    assert place.earliest_ns == 1000


def test_ids_of_any_type_become_numbers_or_text():
    """Ids become numbers or text, since viewers take 7 and "7" for the same."""
    assert [called(one) for one in (7, "7", None, "a", [1])] == [7, 7, "", "a", "[1]"]


@pytest.mark.parametrize("line", ["\n  ", "\n\t "])
@pytest.mark.parametrize("end", ["{", "}"])
@pytest.mark.parametrize("far_ns", [0, 10**19])
def test_only_the_lines_of_kineto_are_moved_in_place(far_ns, end, line):
    """Only Kineto's exact layout is moved in place; others, and huge moves, are decoded."""
    event = {"ph": "X", "cat": "op", "name": "a", **AT, "ts": 5, "dur": 1}
    batch = ",".join([kineto(event)] * 2).replace(f"\n  {end}", f"{line}{end}", 1)
    place = Place(far_ns, Tracks("", 100_000, 1), 123_456)

    is_moved = moved_in_place(batch.encode(), place) is not None
    assert is_moved is (line == "\n  " and not far_ns)
