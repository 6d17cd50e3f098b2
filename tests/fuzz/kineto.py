"""Repair of Kineto's raw traces by the torch tool: a strict trace, or a refusal."""

import gzip
import json
import sys
from pathlib import Path
from typing import Any

from rlprof_torch._kineto import finish
from tests.torch_profiler.kineto_texts import BASE, kineto, old_kineto, old_span, span

sys.set_int_max_str_digits(0)  # a number of 5000 digits is JSON
TOKENS = (
    b'"', b"\\", b"}", b"{", b'", "pid": 3', b'"}, {"ph": "X", "ts": 1, "name": "', b"  },",
    b"]", b"  ],", b'"traceEvents": [\n', b'"baseTimeNanoseconds": 5', b'"rlprof.clock"', b"NaN",
    b"-inf", b"nan", b"\xff", b"\x00" * 40, b"\\u12", b"\\ud800", b'\n  },\n  {\n    "ph": "X",\n',
    b'"args": {\n      "name": "', b"\xe2\x80\xa8", b'/"', b'"rlprof": 1,', b'"traceEvents": [],',
    b'"name": "Iteration Start: ', b'"distributedInfo": {"rank": 0}', b"\t", b"\r\n",
)  # fmt: skip
_REFUSALS = ("is empty; ", "is no JSON; ", "has no traceEvents; ", "is cut short; ")


def seeds() -> tuple[bytes, ...]:
    """Return traces in Kineto's three layouts, valid ones and with its known faults."""
    plain = {"schemaVersion": 1, "baseTimeNanoseconds": BASE, "displayTimeUnit": "ms",
             "traceEvents": [_event(n) for n in range(4)], "traceName": "x"}  # fmt: skip
    broken = '"Concrete Inputs": ["a "b" c", NaN]'
    return (
        kineto(span("aten::add", 1), span('say "hi"', 2), span("rlprof.clock", 3)),
        kineto(span("ü", 1, args=broken), span("\udcff", 2), metadata='    "k"ey": "va/"l",\n'),
        old_kineto(old_span("aten::add", 1), old_span("rlprof.clock", 2), old_span("a\\b", 3)),
        json.dumps(plain).encode(),
        json.dumps(plain, indent=2).encode(),
    )


def check(data: bytes, folder: Path) -> None:
    """Repair *data*, and read the result as strictly as JSON allows."""
    raw, out = folder / "raw.json", folder / "out.json.gz"
    raw.write_bytes(data)
    out.unlink(missing_ok=True)
    try:
        found = finish(raw, out, header={"run": "r"}, marks=[(BASE + 3500, BASE + 9000)])
    except ValueError as exc:
        words = str(exc).removeprefix(f"{raw}: ")
        assert words.startswith(_REFUSALS), words
        assert words.isprintable(), words
        assert not out.exists(), "an artifact of nothing"
        return
    text = gzip.decompress(out.read_bytes()).decode("utf-8")
    trace = json.loads(text, parse_constant=_refuse)
    keys = _top_level_keys(text)
    assert len(keys) == len(set(keys)), f"keys given twice: {keys}"
    json.dumps(trace, ensure_ascii=False).encode("utf-8")  # no half surrogate pair
    assert next(iter(trace)) == "rlprof", "the first key is another's"
    assert found.events == trace["rlprof_counts"]["events"]  # counted by lines, not decoded
    assert trace["rlprof"]["epoch_ns"] == found.epoch_ns
    assert all(isinstance(event, dict) for event in trace["traceEvents"]), "no objects"
    assert [raw, out] == sorted(folder.iterdir(), reverse=True), list(folder.iterdir())


def _refuse(constant: str) -> None:
    raise AssertionError(f"{constant} is no JSON")


def _top_level_keys(text: str) -> list[str]:
    pairs: list[tuple[str, Any]] = []
    json.loads(text, object_pairs_hook=lambda found: pairs.clear() or pairs.extend(found))
    return [key for key, _ in pairs]  # the outermost object comes last


def _event(number: int) -> dict[str, Any]:
    return {"ph": "X", "cat": "kernel", "name": f"näme {number}", "pid": 0, "tid": 7,
            "ts": number + 0.5, "dur": 1.25, "args": {"External id": number}}  # fmt: skip


SEEDS = seeds()
