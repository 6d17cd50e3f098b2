"""A thin torch_npu: it records and raises nothing, and a handler sets the output folder."""

from __future__ import annotations

import json
import os
import sys
import types
from pathlib import Path

import attrs

HOST, TIME = "vm", "20261122204800427"


def _config(*switches, **fields):
    """Make the config class of a release: these fields, and those that every release has."""
    fields |= {"profiler_level": "Level0", "aic_metrics": "none", "data_simplification": True,
               "gc_detect_threshold": None}  # fmt: skip
    fields |= dict.fromkeys(("l2_cache", "record_op_args", "op_attr", *switches), False)
    known = {name: attrs.field(default=value) for name, value in fields.items()}
    return attrs.make_class("_ExperimentalConfig", known, kw_only=True)


_OF_2_5 = _config("msprof_tx", export_type=None)
_UNSET = dict.fromkeys(("host_sys", "mstx_domain_include", "mstx_domain_exclude"))
_OF_2_13 = _config("mstx", "sys_io", "sys_interconnection", export_type="text", **_UNSET)


class _Marks:
    """A stand-in for mstx that notes its calls."""

    def __init__(self):
        self.open = {}
        self.calls = []

    def range_start(self, message, stream=None, domain="default"):
        number = len(self.calls) + 1
        self.calls.append((message, domain))
        self.open[number] = domain
        return number

    def range_end(self, number, domain="default"):
        assert self.open.pop(number) == domain


class FakeNpu:
    """The module, and the faults that a test can switch on."""

    def __init__(self):
        self.devices = 1
        self.fails_to_start = self.leaves_no_info = self.records_nothing = False
        self.where = ""
        self.marks = _Marks()
        self.profiles = []
        self.module = types.ModuleType("torch_npu")
        self.module.__version__ = "2.13.0"
        self.module.npu = types.SimpleNamespace(
            device_count=lambda: self.devices, mstx=self.marks
        )  # fmt: skip
        fake = self

        class Profile:
            def __init__(self, **given):
                self.given, self.calls, self.made = given, [], None
                self.actions = [given["schedule"](0)]
                fake.profiles.append(self)

            def start(self):
                self.calls.append("start")
                if fake.fails_to_start:
                    print("[2026] [ERROR] [1] profiler.py: Call start failed. Exception: no room")
                    return
                self.made = Path(fake.where) / f"{HOST}_{os.getpid()}_{TIME}_ascend_pt"
                (self.made / "FRAMEWORK").mkdir(parents=True)

            def step(self):
                self.calls.append("step")
                self.actions.append(self.given["schedule"](1))
                made = self.made
                events = "" if fake.records_nothing else "events " * 100
                (made / "FRAMEWORK/torch.op_range").write_text(events)
                if "NPU" in self.given["activities"]:
                    (made / "PROF_000001_20261122204800427_FAKE/device_0").mkdir(parents=True)
                if not fake.leaves_no_info:
                    info = {"config": {}, "rank_id": os.environ.get("RANK", "5")}
                    (made / "profiler_info_5.json").write_text(json.dumps(info))

            def stop(self):
                self.calls.append("stop")

        def handler(where, analyse_flag=True):
            assert analyse_flag is False
            fake.where = where

        names = types.SimpleNamespace
        self.module.profiler = names(
            profile=Profile, tensorboard_trace_handler=handler, _ExperimentalConfig=_OF_2_13,
            ProfilerActivity=names(CPU="CPU", NPU="NPU"),
            ProfilerAction=names(RECORD_AND_SAVE="save", NONE="none"),
            ProfilerLevel=names(
                Level_none="Level_none", Level0="Level0", Level1="Level1", Level2="Level2"
            ),
            AiCMetrics=names(AiCoreNone="none", PipeUtilization="pipe", Memory="memory"),
            ExportType=names(Text="text", Db="db"),
            HostSystem=names(CPU="cpu", MEM="mem", DISK="disk", NETWORK="net", OSRT="osrt"),
        )  # fmt: skip

    def be_old(self):
        """Have the fields and signatures of 2.5."""
        self.module.profiler._ExperimentalConfig = _OF_2_5
        del self.module.profiler.HostSystem
        self.marks.range_start = lambda message, stream=None: self.marks.calls.append(message) or 1
        self.marks.range_end = lambda number: None

    def install(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "torch_npu", self.module)


def analysed(made: Path, timeout_s: float) -> str:
    """Write the files of an analysis: a trace of the marks and one operator, and a table."""
    output = made / "ASCEND_PROFILER_OUTPUT"
    output.mkdir(exist_ok=True)
    marks = json.loads((made.parent / "npu.json").read_text())["marks"]
    events = [
        {"ph": "M", "name": "process_labels", "pid": 2, "tid": 0, "args": {"labels": "NPU 0"}},
        {"ph": "X", "name": "kernel", "pid": 2, "tid": 7, "ts": _us(marks[0][1]), "dur": 2.5},
        *(
            {"ph": "X", "name": "rlprof.clock", "pid": 1, "tid": 1, "ts": _us(before),
             "dur": (after - before) / 1000, "args": {}}
            for before, after in marks
        ),
    ]  # fmt: skip
    (output / "trace_view.json").write_text(json.dumps(events))
    (output / "kernel_details.csv").write_text("Step Id,Name\n7,kernel\n")
    (output / "analyse.done").write_text("")
    return ""


def _us(ns):
    return f"{ns // 1000}.{ns % 1000:03d}"
