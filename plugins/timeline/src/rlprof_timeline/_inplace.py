"""Moves a batch of events in the layouts of Kineto without decoding them.

New numbers take the room of the old ones and of the white space before and behind the members. So
nothing else moves, and a batch takes some hundred operations of numpy. `_events.py` moves events of
another layout, if they are few, or else the whole batch. Separate for its speed, three to five
times that of `_events.py`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from rlprof_timeline._clock import LAST_NS
from rlprof_timeline._decimals import WIDEST, in_microseconds
from rlprof_timeline._events import moved
from rlprof_timeline._kineto import Layout
from rlprof_timeline._place import FIRST_WORDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rlprof_timeline._kineto import Alike
    from rlprof_timeline._place import Place

_MANY = 256
"""Tracks of a batch: each costs a pass over all events that are left."""
_FEW = 64
"""Odd events of a batch: each costs a copy of a piece of it."""
_LATEST_NS = 10**18
"""Times below this are written here; larger ones have more digits."""
_NAME = b'"name": "'
_FIRST_WORDS = [int.from_bytes(word.encode(), "little") for word in FIRST_WORDS]
_DURATION = re.compile(rb'"dur": (\d+(?:\.\d+)?)')


def moved_in_place(batch: bytes, to: Place) -> bytes | memoryview | None:
    """Return the events of *batch* for the timeline; None: they have another layout."""
    is_far = abs(to.shift_ns) > LAST_NS
    if to.is_cut or is_far or b'\n  {\n    "' not in batch[: 1 << 16]:
        return None
    found = _Batch(batch)
    return found.moved(to) if found.is_known() else None


class _Batch(Layout):
    """One batch, on its way to the place of its events."""

    def moved(self, to: Place) -> bytes | memoryview | None:
        """Move the batch; if that fails, the partial result is discarded."""
        np = self.np
        is_odd = np.ones(len(self.opens), bool)
        tracks = []
        for alike in self.alike(_FEW):
            ns = alike.ns + to.shift_ns
            if ns.min() < 0 or ns.max() >= _LATEST_NS:
                return None
            tracks.append((alike, ns, [*self._tracks(alike)]))
            if not all(text.isdigit() for _, *texts in tracks[-1][2] for text in texts):
                return None
            is_odd[alike.events] = False
        odd = np.flatnonzero(is_odd).tolist()
        if len(odd) > _FEW or sum(len(ones) for *_, ones in tracks) > _MANY:
            return None
        for number in odd:
            if b'"ph": "M"' in (event := self.event(number)):
                moved(event, to)  # it names tracks, which their numbers depend on
        if not all(self._write(*one, to) for one in tracks):
            return None
        for alike, ns, _ in tracks:
            to.saw(int(ns.min()))
            to.events += len(ns)
            if alike.shape.phase == ord("X"):
                self._meet(alike, ns, to)
        return self._joined(odd, to)

    def _tracks(self, alike: Alike) -> Iterator[Any]:
        """Yield the places of the events of each thread."""
        left = self.np.arange(len(alike.ns))
        for _ in range(_MANY + 1):
            if not len(left):
                return
            is_it = alike.tids[left] == alike.tids[left[0]]
            is_it &= alike.pids[left] == alike.pids[left[0]]
            old = (int(one[left[0]]).to_bytes(8, "little") for one in (alike.pids, alike.tids))
            yield left[is_it], *(text.rpartition(b" ")[2].decode("latin-1") for text in old)
            left = left[~is_it]

    def _write(self, alike: Alike, ns: Any, tracks: list[Any], to: Place) -> bool:
        """Write processes, threads, times and ids; return whether there is room."""
        np, shape = self.np, alike.shape
        text, longest = in_microseconds(ns)
        ends = b"," if shape.stop == ord(",") else b""
        for which, *old in tracks:
            pid, tid = to.tracks.at(*map(int, old))
            old_text = '"pid": ,"tid": ,"ts": .000', *old, shape.us, ends
            size = sum(map(len, old_text)) + sum(shape.gaps)
            first = f'"pid":{pid},"tid":{tid},"ts":'.encode()
            room = size - len(first) - len(ends)
            if room < longest:
                return False
            run, used = f"V{size}", min(room, WIDEST)
            new = np.repeat(np.frombuffer(first + b" " * room + ends, run), len(which))
            rows = new.view(np.uint8).reshape(-1, size)
            digits = text[which].view(np.uint8).reshape(-1, WIDEST)
            rows[:, size - len(ends) - used : size - len(ends)] = digits[:, -used:]
            self.runs(run, size)[alike.begins[which]] = new
        if shape.scope or shape.phase == ord("X"):
            return True
        first, last = f'"ph":"{shape.phase:c}",'.encode(), f'"id":{to.prefix}'.encode()
        size = shape.second + len('"id": ') - len("\n  {")
        new = np.frombuffer(first + last.rjust(size - len(first)), f"V{size}")
        self.runs(f"V{size}", size)[self.starts[alike.events] + len("\n  {")] = new
        return True

    def _meet(self, alike: Alike, ns: Any, to: Place) -> None:
        """Report collectives and barriers to the place; few events are either."""
        np = self.np
        values = self.starts[alike.events] + alike.shape.second + len('"cat": "')
        left = np.arange(len(values))
        for _ in range(_MANY):
            if not len(left):
                return
            # The categories of one length have their names in one place.
            begin = int(values[left[0]])
            behind = self.text.find(_NAME, begin) - begin
            at = values[left] + behind
            is_it = self.stands(at, _NAME[:8])
            is_it[0] = True
            begins = self.words[at + len(_NAME)] & np.uint64(0xFFFFFFFF)
            is_meant = is_it & (sum(begins == word for word in _FIRST_WORDS) > 0)
            for name, nth in self._looked_for(at[is_meant] + len(_NAME), left[is_meant], to):
                event = self.event(alike.events[nth])
                dur = _DURATION.search(event)
                dur_ns = round(float(dur[1]) * 1000) if dur else 0
                to.met(name, int(ns[nth]) + dur_ns, dur_ns, event)
            left = left[~is_it]

    def _looked_for(self, at: Any, numbers: Any, to: Place) -> list[tuple[str, int]]:
        """Return the names at *at* that the place looks for, and their *numbers*."""
        wanted: list[tuple[int, str]] = []
        for _ in range(_MANY):
            if not len(at):
                break
            name = bytes(self.text[at[0] : self.text.find(b'"', at[0]) + 1])
            is_it = self.runs(f"S{len(name)}", len(name))[at] == name
            shown = name[:-1].decode("utf-8", "replace")
            if to.looks_for(shown):
                wanted += [(nth, shown) for nth in numbers[is_it].tolist()]
            at, numbers = at[~is_it], numbers[~is_it]
        return [(name, nth) for nth, name in sorted(wanted)]

    def _joined(self, odd: list[int], to: Place) -> bytes | memoryview:
        """Join the moved events and the odd ones, which are moved one by one."""
        text = memoryview(self.text)[: self.size]
        if not odd:
            return text
        pieces: list[bytes] = []
        done = 0
        for number in odd:
            pieces += bytes(text[done : self.starts[number]]), moved(self.event(number), to)
            done = self.starts[number] + len(self.event(number))
        pieces.append(bytes(text[done:]))
        stripped = (piece.strip().strip(b",") for piece in pieces)
        return b",\n".join(piece for piece in stripped if piece)
