"""Every option reaches whom it is for: CANN, torch_npu's own notes and files, or our export."""

from __future__ import annotations

import json

import attrs
import pytest

from rlprof_npu._options import CONTENTS, EXPORTS, HOST_SYSTEMS, LEVELS, METRICS, NpuOptions

pytestmark = pytest.mark.slow

LEVEL0, MARKS, MEMORY, L2, ATTRIBUTES = 0x801, 0x80, 0x1000, 0x10, 0x4000
LEVEL1, LEVEL2 = 0x27, 0x12F


@attrs.frozen
class Case:
    """One value of one option, beside others that it needs, and what it is alone to change."""

    option: str
    value: object
    reaches: dict[str, object]
    beside: dict[str, object] = attrs.field(factory=dict)

    @property
    def both(self):
        """The options with it, and the same without."""
        return {**self.beside, self.option: self.value}, self.beside


def content(name, reaches, *more):
    """Return the case of one of the contents, beside *more*."""
    return Case("contents", [*more, name], reaches, {"contents": [*more]} if more else {})


def metrics(name, number):
    """Return the case of AI Core metrics; the default of level 1 is not PipeUtilization's here."""
    other = "PipeUtilization" if name == "AiCoreNone" else "AiCoreNone"
    reaches = {"metrics": number, "bits": LEVEL1 | MARKS}
    return Case("aic_metrics", name, reaches, {"level": 1, "aic_metrics": other})


CASES = (
    content("npu", {"bits": LEVEL0 | MARKS}, "cpu"),
    content("cpu", {"files": ["torch.op_mark", "torch.op_range"]}, "npu"),
    content(
        "memory",
        {"bits": LEVEL0 | MARKS | MEMORY, "set": ["3=50"], "profile_memory": True},
        "npu",
        "cpu",
    ),
    content("shapes", {"record_shapes": True}, "npu", "cpu"),
    content("module", {"with_modules": True}, "npu", "cpu"),
    content("stack", {"with_stack": True}, "npu", "cpu"),
    Case("level", "none", {"bits": MARKS}),
    Case("level", 0, {"bits": LEVEL0 | MARKS}, {"level": 1}),
    Case("level", "level1", {"bits": LEVEL1 | MARKS, "metrics": 1}),
    Case("level", 2, {"bits": LEVEL2 | MARKS, "metrics": 1}),
    metrics("ArithmeticUtilization", 0),
    metrics("PipeUtilization", 1),
    metrics("Memory", 2),
    metrics("MemoryL0", 3),
    metrics("ResourceConflictRatio", 4),
    metrics("MemoryUB", 5),
    metrics("L2Cache", 6),
    metrics("MemoryAccess", 8),
    metrics("AiCoreNone", 255),
    Case("l2_cache", True, {"bits": LEVEL0 | MARKS | L2}),
    Case("op_attr", True, {"bits": LEVEL0 | MARKS | ATTRIBUTES}, {"export_type": ["db", "text"]}),
    Case("record_op_args", True, {"dumps": True}),
    Case(
        "gc_detect_threshold", 0, {"files": ["torch.gc_record", "torch.op_mark", "torch.op_range"]}
    ),
    Case("gc_detect_threshold", 1e6, {"_gc_detect_threshold": 1e6}),
    Case("export_type", "db", {"_export_type": ["db"]}),
    Case("export_type", ["text"], {"_export_type": ["text"]}, {"export_type": "db"}),
    *(Case("host_sys", [name], {"set": [f"8={name}"]}) for name in HOST_SYSTEMS),
    Case("sys_io", True, {"set": ["5=100"]}),
    Case("sys_interconnection", True, {"set": ["6=50"]}),
    Case("mstx", False, {"bits": LEVEL0, "domains": []}),
    Case("mstx_domain_include", ["mine"], {"domains": ["mine"]}),
    Case("mstx_domain_exclude", ["mine"], {"domains": ["default"]}),
    Case("analysis", "none", {"analysis": "none"}),
    Case("analysis_timeout_s", 60, {"timeout_s": 60.0}),
    Case("discrete", True, {"refuses": ["discrete"]}),
)


def seen(found):
    """Return what of a window reached anybody, in the words of the cases."""
    calls = [line.split(" ") for line in found["reached"]]

    def of(name):
        return [
            dict(word.split("=", 1) for word in words) for call, *words in calls if call == name
        ]

    made = of("aclprofCreateConfig")
    return {
        **found["taken"],
        "bits": int(made[0]["bits"], 16) if made else None,
        "metrics": int(made[0]["metrics"]) if made else None,
        "set": [f"{one['kind']}={one['value']}" for one in of("aclprofSetConfig")],
        "dumps": bool(of("aclopStartDumpArgs") and of("aclopStopDumpArgs")),
        "domains": sorted({one["domain"] for one in of("mstx.start")} - {"rlprof"}),
        "files": found["files"],
        "analysis": found["notes"]["analysis"],
        "timeout_s": found["notes"]["timeout_s"],
        "refuses": sorted(found["unsupported"]),
    }


@pytest.fixture(scope="module", name="windows")
def _windows(drive):
    """Record a window with each of the values, and one without it, all in one process."""
    asked = [options for case in CASES for options in case.both]
    done = drive("each", {}, env={"ASKED": json.dumps(asked)})
    assert done.returncode == 0, done.output
    found = [json.loads(line) for line in (done.home / "each").read_text().splitlines()]
    return list(zip(found[::2], found[1::2], strict=True))


@pytest.mark.parametrize(
    "number", range(len(CASES)), ids=lambda at: f"{CASES[at].option}={CASES[at].value}"
)
def test_an_option_reaches_whom_it_is_for(windows, number):
    """What is said of it arrives with it, and does not without."""
    case = CASES[number]
    taken, without = (seen(one) for one in windows[number])

    assert {name: taken[name] for name in case.reaches} == case.reaches
    assert {name: without[name] for name in case.reaches} != case.reaches


def test_every_option_is_tried():
    """There is no option, and no value of those that have a list of them, without a case."""
    tried = {}
    for case in CASES:
        values = case.value if isinstance(case.value, list) else [case.value]
        names = {str(value).removeprefix("level") for value in values}
        tried.setdefault(case.option, set()).update(names)

    assert set(tried) == {field.name for field in attrs.fields(NpuOptions)}
    assert tried["contents"] == set(CONTENTS)
    assert tried["level"] == set(LEVELS)
    assert tried["aic_metrics"] == set(METRICS)
    assert tried["export_type"] == set(EXPORTS)
    assert tried["host_sys"] == set(HOST_SYSTEMS)


def test_nothing_was_reset(windows):
    """torch_npu has nothing to say against any of these options."""
    said = [line for both in windows for one in both for line in one["printed"].splitlines()]

    assert [line for line in said if "reset" in line or "nvalid" in line] == []


def test_what_an_old_cann_leaves_out_is_not_called_applied(drive):
    """It leaves them out without an error; the manifest says that nobody has confirmed them."""
    options = {"level": 1, "aic_metrics": "MemoryAccess", "op_attr": True, "export_type": "db"}
    done = drive("train", {**options, "analysis": "none"}, env={"STAND_IN_OLD": "1"})

    (call,) = done.calls("aclprofCreateConfig")
    (capture,) = done.run.captures
    words = "torch_npu does not say whether CANN could record op_attr, MemoryAccess"
    assert (int(call["bits"], 16), call["metrics"]) == (LEVEL1 | MARKS, "1")
    assert words in " ".join(capture.notes)
