"""Every option reaches CANN: in the bits of `aclprof`, or in what torch_npu notes that it took."""

from __future__ import annotations

import json

import pytest

pytestmark = pytest.mark.slow

LEVEL0, MARKS, MEMORY, L2 = 0x801, 0x80, 0x1000, 0x10
NONE, PIPES = "255", "1"

# Options, then the bits and the AI Core metrics that aclprofCreateConfig is given.
BITS = [
    ({}, LEVEL0 | MARKS, NONE),
    ({"mstx": False}, LEVEL0, NONE),
    ({"contents": ["npu"], "mstx": False}, LEVEL0, NONE),
    ({"contents": ["npu", "memory"], "mstx": False}, LEVEL0 | MEMORY, NONE),
    ({"level": "none"}, MARKS, NONE),
    ({"level": "level1", "mstx": False}, 0x27, PIPES),
    ({"level": 2, "mstx": False}, 0x12F, PIPES),
    ({"l2_cache": True, "mstx": False}, LEVEL0 | L2, NONE),
    ({"level": 1, "aic_metrics": "AiCoreNone", "mstx": False}, 0x27, NONE),
    ({"level": 1, "aic_metrics": "ArithmeticUtilization", "mstx": False}, 0x27, "0"),
    ({"level": 1, "aic_metrics": "Memory", "mstx": False}, 0x27, "2"),
    ({"level": 1, "aic_metrics": "MemoryL0", "mstx": False}, 0x27, "3"),
    ({"level": 1, "aic_metrics": "ResourceConflictRatio", "mstx": False}, 0x27, "4"),
    ({"level": 1, "aic_metrics": "MemoryUB", "mstx": False}, 0x27, "5"),
    ({"level": 1, "aic_metrics": "L2Cache", "mstx": False}, 0x27, "6"),
]

# Options, then what aclprofSetConfig is given: which setting, and its value.
SETTINGS = [
    ({"contents": ["npu", "memory"]}, ("3", "50")),
    ({"sys_io": True}, ("5", "100")),
    ({"sys_interconnection": True}, ("6", "50")),
    *(({"host_sys": [name]}, ("8", name)) for name in ("cpu", "mem", "disk", "network", "osrt")),
    ({"host_sys": "numa"}, ("8", "numa")),
]

# Options, then what torch_npu notes; CANN hears of these only where it says that it knows them.
NOTED = [
    ({"op_attr": True, "export_type": ["db", "text"]}, {"_op_attr": True}),
    ({"record_op_args": True}, {"record_op_args": True}),
    ({"level": 1, "aic_metrics": "MemoryAccess"}, {"_aic_metrics": "ACL_AICORE_MEMORY_ACCESS"}),
    ({"gc_detect_threshold": 2}, {"_gc_detect_threshold": 2.0}),
    ({"export_type": "db"}, {"_export_type": ["db"]}),
    ({"mstx_domain_include": ["a"]}, {"_mstx_domain_include": ["a", "rlprof"]}),
    ({"mstx_domain_exclude": "communication"}, {"_mstx_domain_exclude": ["communication"]}),
    ({"contents": ["cpu", "npu", "shapes", "stack"]}, {"record_shapes": True, "with_stack": True}),
    ({"contents": ["module", "memory"]}, {"with_modules": True, "profile_memory": True}),
]


@pytest.fixture(scope="module", name="all_of_them")
def _all_of_them(drive):
    """Record a window with each of the options, all in one process: the order is the table's."""
    asked = [options for options, *_ in (*BITS, *SETTINGS, *NOTED)]
    done = drive("each", {}, env={"ASKED": json.dumps(asked)})
    assert done.returncode == 0, done.output
    return [json.loads(line) for line in (done.home / "each").read_text().splitlines()]


@pytest.mark.parametrize("number", range(len(BITS)), ids=lambda at: str(BITS[at][0]))
def test_bits(all_of_them, number):
    """The mask and the metrics that CANN is given are those of the option."""
    _, bits, metrics = BITS[number]

    (call,) = [one for one in all_of_them[number]["reached"] if "aclprofCreateConfig" in one]
    assert call == f"aclprofCreateConfig devices=1 metrics={metrics} bits={bits:#x}"


@pytest.mark.parametrize("number", range(len(SETTINGS)), ids=lambda at: str(SETTINGS[at][0]))
def test_settings(all_of_them, number):
    """The setting that CANN is given is that of the option, and the only one."""
    _, (kind, value) = SETTINGS[number]

    found = all_of_them[len(BITS) + number]["reached"]
    calls = [one for one in found if "aclprofSetConfig" in one]
    assert calls == [f"aclprofSetConfig kind={kind} value={value}"]


@pytest.mark.parametrize("number", range(len(NOTED)), ids=lambda at: str(NOTED[at][0]))
def test_noted(all_of_them, number):
    """What torch_npu says at the end that it was asked for is the option: it has reset nothing."""
    _, expected = NOTED[number]

    taken = all_of_them[len(BITS) + len(SETTINGS) + number]["taken"]
    found = {name: taken[name] for name in expected}
    assert {name: sorted(one) if isinstance(one, list) else one for name, one in found.items()} == (
        expected
    )


def test_nothing_was_reset(all_of_them):
    """torch_npu has nothing to say of any of these options, but that cpu alone needs none."""
    said = [line for one in all_of_them for line in one["printed"].splitlines()]

    assert [line for line in said if "reset" in line or "nvalid" in line] == []


def test_domains_left_out_are_not_marked(drive):
    """A domain that is excluded reaches nobody; ours does, also where others are chosen."""
    options = {"contents": ["npu"], "mstx_domain_exclude": ["default"]}
    done = drive("marks", options)
    chosen = drive("marks", {"contents": ["npu"], "mstx_domain_include": ["mine"]})

    assert {one["domain"] for one in done.calls("mstx.start")} == {"mine", "rlprof"}
    assert {one["domain"] for one in chosen.calls("mstx.start")} == {"mine", "rlprof"}
    assert {one["text"] for one in done.calls("mstx.start") if one["domain"] == "mine"} == {"own"}
