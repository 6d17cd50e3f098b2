"""Options of the tool `npu`, their conflicts, and the fields that torch_npu gets."""

import pytest

from rlprof.config import check_config
from rlprof.errors import ConfigError
from rlprof_npu._library import experimental
from rlprof_npu._options import NpuOptions, conflicts, lighter
from tests.cases import cases


def asked(options):
    """Return the options of a config with *options*, or its faults, without their path."""
    config = {"tool": "npu", "steps": [1], "roles": {"actor": {}}, "tools": {"npu": options}}
    try:
        _, tools = check_config(config)
    except ConfigError as exc:
        return [fault.removeprefix("config: tools.npu").removeprefix(".") for fault in exc.faults]
    return tools["actor"][0].options


@cases(
    "name, words, field, meant",
    ("level", ("level_none", "Level2", 1), "level", ["none", "2", "1"]),
    ("analysis", (True, False), "analysis", ["after", "none"]),
    ("contents", ("cpu, Stack", ["cpu"]), "contents", [("cpu", "stack"), ("cpu",)]),
    ("contents", (["shapes", "memory"], ["cpu"]), "activities", [("npu", "cpu"), ("cpu",)]),
)
def test_words_of_verl_and_of_the_library_are_taken(name, words, field, meant):
    """Options take words of verl and torch_npu; contents without npu or cpu record both."""
    assert [getattr(asked({name: word}), field) for word in words] == meant


# failures.md: npu-options
@cases(
    "options, fault",
    ({"contents": ["gpu"]}, "got 'gpu'; did you mean 'npu'?"),
    ({"level": 3}, "level: expected none, 0, 1 or 2, got 3"),
    ({"export_type": []}, "export_type: is empty; give text, db, or both"),
    ({"l2_cache": 1}, "l2_cache: expected true or false, got 1"),
    # core would end the helper in the middle of it
    ({"analysis_timeout_s": 900}, "must be less than limits.export_timeout_s, 600; got 900"),
    ({"contents": ["cpu"], "level": 1, "sys_io": True},
     "only with the device it records level, sys_io; add npu to contents"),
    ({"contents": ["npu", "stack"]},
     "only with the host it records stack; add cpu to contents"),
    ({"aic_metrics": "Memory"}, "aic_metrics Memory is recorded from level 1 on"),
    ({"mstx_domain_include": ["a"], "mstx_domain_exclude": ["b"]}, "exclude each other"),
    ({"gc_detect_threshold": 2e9}, "got 2000000000.0"),
    ({"op_attr": True}, "op_attr is written into a db only"),
    ({"op_attr": True, "export_type": ["db"], "level": "none"}, "not recorded at level none"),
    ({"level": "none", "mstx": False}, "level none records marks alone"),
    ({"mstx": False, "mstx_domain_exclude": ["b"]}, "mstx is off, so it has no domains"),
    ({"contents": ["npu"], "gc_detect_threshold": 1.0}, "records gc_detect_threshold"),
)  # fmt: skip
def test_options_that_torch_npu_would_ignore_are_refused(options, fault):
    """Options that torch_npu would silently reset or ignore are refused before the run."""
    (told,) = asked(options)

    assert fault in told


@pytest.mark.parametrize(
    "options",
    [{"level": "none"}, {"mstx": False}, {"mstx_domain_include": ("a",)}, {"contents": ("cpu",)},
     {"op_attr": True, "export_type": ("db",)}, {"contents": ("npu",)},
     {"contents": ("cpu", "stack"), "gc_detect_threshold": 1.0},
     {"contents": ("npu",), "level": "2", "aic_metrics": "Memory", "l2_cache": True}],
)  # fmt: skip
def test_options_without_a_conflict_are_accepted(options):
    """An option alone, or with the options that it needs, has no conflict."""
    assert conflicts(NpuOptions(**options)) == []


def test_lighter_options_lack_the_most_expensive_of_the_contents():
    """`lighter` drops stacks, which cost most, from the contents."""
    assert lighter(NpuOptions(contents=("cpu", "shapes", "stack"))).contents == ("cpu", "shapes")


def test_every_field_is_given_by_name(library):
    """torch_npu gets every field by name, and rlprof's domain among the included ones."""
    options = NpuOptions(mstx_domain_include=("mine",), export_type=("db", "text"),
                         gc_detect_threshold=0.0)  # fmt: skip

    fields, lacks = experimental(library.module.profiler, options)

    assert lacks == {}
    assert fields == {
        "profiler_level": "Level0", "aic_metrics": "none", "export_type": ["db", "text"],
        "data_simplification": True, "gc_detect_threshold": 0.0, "mstx": True,
        "mstx_domain_include": ["mine", "rlprof"],
    }  # fmt: skip


def test_a_member_that_the_library_lacks_is_not_given(library, monkeypatch):
    """Metrics that an older torch_npu lacks are left out and named."""
    monkeypatch.delattr(library.module.profiler.AiCMetrics, "Memory")

    fields, lacks = experimental(
        library.module.profiler, NpuOptions(level="1", aic_metrics="Memory")
    )

    assert "aic_metrics" not in fields
    assert [*lacks] == ["aic_metrics"]
