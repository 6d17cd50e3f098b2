"""How the signatures are read out of the sources of SGLang: an old shape, and a new one."""

from __future__ import annotations

from tests.sglang_adapter.extract import described

OLD = {
    "sglang/srt/managers/tokenizer_manager.py": """
class TokenizerManager:
    def __init__(self, server_args):
        self.flush_communicator = _Communicator(self.send, 1)
        self.profile_communicator = _Communicator(self.send, server_args.dp_size)

    async def start_profile(self, output_dir: str | None = None, num_steps: int = None):
        with_stack = get_bool_env_var("SGLANG_PROFILE_WITH_STACK", "true")
        raise ImportError("nobody runs this")

    async def _execute_profile(self, req):
        result = (await self.profile_communicator(req))[0]
        if not result.success:
            raise RuntimeError(result.message)

    async def _handle_batch_output(self, recv_obj):
        for i, rid in enumerate(recv_obj.rids):
            meta_info = {"id": rid, "prompt_tokens": recv_obj.prompt_tokens[i]}
            if self.enable_metrics:
                self._add_metric_if_present(recv_obj, "queue_time", meta_info, i)
            if state.finished:
                meta_info["e2e_latency"] = 1
                if self.enable_metrics:
                    self._calculate_timing_metrics(meta_info, state, recv_obj, i)

    def _calculate_timing_metrics(self, meta_info, state, recv_obj, i):
        meta_info["decode_finished_ts"] = state.finished_time

class _Communicator:
    def handle_recv(self, reply):
        self.values.append(reply)
""",
    "sglang/srt/managers/scheduler.py": """
class Scheduler:
    def __init__(self, server_args):
        self.forward_ct = 0
        self.profiler_activities = None
        self._request_dispatcher = TypeBasedDispatcher([(ProfileReq, self.profile)])

    def run_batch(self, batch):
        self.forward_ct += 1
        self.part._profile_batch_predicate(batch)
        self.forward(batch)

    def profile(self, recv_req):
        if recv_req.type == ProfileReqType.START_PROFILE:
            return self.start_profile(recv_req.num_steps)

    def start_profile(self, num_steps):
        self.profiler_target_forward_ct = self.forward_ct + num_steps
        output_dir = os.getenv("SGLANG_TORCH_PROFILER_DIR", "/tmp")
        activity_map = {"CPU": 1, "GPU": 2}
        if "MEM" in activities:
            return ProfileReqOutput(success=False, message="It runs already.")
        return ProfileReqOutput(success=True, message="Succeeded")

    def release_memory_occupation(self, recv_req): ...
""",
    "sglang/srt/managers/io_struct.py": """
@dataclass
class ProfileReqInput:
    output_dir: str | None = None

class ProfileReqType(Enum):
    START_PROFILE = 1

@dataclass
class ProfileReq:
    type: ProfileReqType
    activities: list[str] | None = None
""",
    "sglang/srt/entrypoints/http_server.py": """
@app.api_route("/start_profile", methods=["GET", "POST"])
async def start(obj: ProfileReqInput | None = None): ...

@app.get("/health")
async def health(): ...
""",
    "sglang/srt/server_args.py": "class ServerArgs:\n    tp_size: int = 1\n",
    "sglang/srt/environ.py": "SGLANG_TORCH_PROFILER_DIR = 1\nSGLANG_PORT = 2\n",
    "sglang/test/broken.py": "this is no Python, and SGLANG_PROFILE_V2 is none of the engine's",
}

PART = "sglang/srt/managers/scheduler_components/profiler_manager.py"
NEW = {
    "sglang/srt/managers/tokenizer_manager.py": """
class TokenizerManager(TokenizerControlMixin):
    async def _handle_batch_output(self, recv_obj):
        if self.enable_metrics:
            meta_info.update(scheduler_time_stats.convert_to_output_meta_info())
            if state.finished:
                meta_info.update(state.time_stats.convert_to_output_meta_info(1))

    async def _stream_one_response(self, obj):
        while True:
            if not self.enable_metrics:
                out["meta_info"]["response_sent_to_client_ts"] = 1
""",
    "sglang/srt/managers/tokenizer_control_mixin.py": """
class TokenizerControlMixin:
    def init_communicators(self):
        comm = FanOutCommunicator(self.send, get_parallel().num_dp_ranks, mode)

    async def start_profile(self, req: ProfileReq | None = None): ...

    async def get_internal_state(self) -> List[Dict[Any, Any]]: ...
""",
    "sglang/srt/managers/communicator.py": """
class FanOutCommunicator(Generic[T]):
    async def queueing_call(self, obj):
        async with self._lock:
            self._send(obj)

    def handle_recv(self, reply):
        if self.values is None:
            return
        self.values.append(reply)
""",
    "sglang/srt/managers/scheduler.py": """
class Scheduler(SchedulerMixin):
    def init_request_dispatcher(self):
        pairs = [(FlushReq, self.flush), (ProfileReq, lambda req: self.part._profile(req))]

def run_scheduler_process():
    load_plugins()
    scheduler = Scheduler()
""",
    "sglang/launch_server.py": "if __name__ == '__main__':\n    load_plugins()\n",
    PART: """
class SchedulerProfilerManager:
    get_forward_ct: Callable[[], int]

    def __post_init__(self):
        self.profile_in_progress: bool = False

    def _start_profile(self, stage=None):
        self.profile_in_progress = True
        self.profile_prefix = ""
        activity_map[platform.activity()] = 3
        try:
            self.torch_profiler.start()
        except RuntimeError as e:
            return ProfileReqOutput(success=False, message=str(e))

    def _stop_profile(self, stage=None):
        if get_parallel().pp_size > 1:
            filename_parts.append(f"PP-{get_parallel().pp_rank}")
""",
    "sglang/srt/managers/io_struct.py": """
class BaseReq(msgspec.Struct, kw_only=True): ...

class ProfileReq(BaseReq, kw_only=True):
    req_type: ProfileReqType = ProfileReqType.START_PROFILE
""",
    "sglang/srt/observability/req_time_stats.py": """
class APIServerReqTimeStats:
    def convert_to_output_meta_info(self):
        meta_info = {}
        meta_info["request_received_ts"] = 1

class SchedulerReqTimeStats:
    def convert_to_output_meta_info(self):
        meta_data = {}
        meta_data.update({"queue_time": 1, "what it is": 2})
""",
    "sglang/srt/plugins/__init__.py": """
GENERAL_PLUGINS_GROUP = "sglang.srt.plugins"

def load_plugins():
    envs.SGLANG_PLUGINS.get()
""",
    "sglang/srt/plugins/hook_registry.py": """
class HookType(Enum):
    AFTER = "after"

class HookRegistry:
    @classmethod
    def register(cls, target, hook, hook_type=HookType.AFTER, *, source=None): ...
""",
    "sglang/srt/server_args.py": "class ServerArgs:\n    def resolved_dict(self): ...\n",
    "sglang/srt/arg_groups/fields/device.py": (
        "class Device(msgspec.Struct):\n    device: A[Optional[str], 'words'] = None\n"
    ),
}


def test_what_is_asked_and_answered_is_read():
    """Nothing is imported; what a release lacks is null; the mixin is found that has a method."""
    old, new = described(OLD), described(NEW)

    assert old["TokenizerManager"]["start_profile"] == (
        "async def start_profile(self, output_dir=None, num_steps=None)"
    )
    assert old["TokenizerManager"]["stop_profile"] is None
    assert new["TokenizerManager"]["start_profile"] == "async def start_profile(self, req=None)"
    assert old["profiling"] == {
        "home": "sglang/srt/managers/tokenizer_manager.py TokenizerManager",
        "reply": [
            "result = (await self.profile_communicator(req))[0]",
            "raise RuntimeError(result.message)",
        ],
        "refused": ["not result.success"],
        "replies": "server_args.dp_size",
        "variables": {"SGLANG_PROFILE_WITH_STACK": "true"},
        "state": "",
    }
    assert new["profiling"]["home"] == (
        "sglang/srt/managers/tokenizer_control_mixin.py TokenizerControlMixin"
    )
    assert new["profiling"]["replies"] == "get_parallel().num_dp_ranks"
    assert new["profiling"]["state"] == "List[Dict[Any, Any]]"
    assert old["communicator"] == {
        "home": "sglang/srt/managers/tokenizer_manager.py _Communicator",
        "outlives a cancelled call": False,
        "drops a late reply": False,
    }
    assert new["communicator"] == {
        "home": "sglang/srt/managers/communicator.py FanOutCommunicator",
        "outlives a cancelled call": True,
        "drops a late reply": True,
    }


def test_requests_are_read():
    """Their fields with defaults, and whether they are dataclasses or structs."""
    old, new = described(OLD), described(NEW)

    assert old["requests"] == {
        "ProfileReqInput": {"output_dir": "None"},
        "ProfileReq": {"type": "", "activities": "None"},
        "ProfileReqOutput": None,
    }
    assert new["requests"]["ProfileReq"] == {"req_type": "ProfileReqType.START_PROFILE"}
    assert (old["request kinds"], new["request kinds"]) == ({"START_PROFILE": "1"}, None)
    assert (old["request base"], new["request base"]) == ("dataclass", "msgspec.Struct")


def test_the_scheduler_s_part_is_read():
    """The scheduler itself, or the part that it holds, with what each sets, knows and refuses."""
    old, new = described(OLD)["scheduler part"], described(NEW)["scheduler part"]

    assert old == {
        "home": "sglang/srt/managers/scheduler.py Scheduler",
        "fields": {},
        "methods": {
            "profile": "def profile(self, recv_req)",
            "start_profile": "def start_profile(self, num_steps)",
        },
        "handler": "self.profile",
        "kind": ["type"],
        "attributes": {
            "__init__": ["profiler_activities"],
            "start_profile": ["profiler_target_forward_ct"],
        },
        "activities": ["CPU", "GPU", "MEM"],
        "folder": ["/tmp"],
        "targets": ["self.forward_ct + num_steps"],
        "refusals": ["It runs already."],
        "refuses what torch does": False,
        "names": {},
    }
    assert new["home"] == f"{PART} SchedulerProfilerManager"
    assert new["fields"] == {"get_forward_ct": ""}
    assert new["handler"] == "lambda req: self.part._profile(req)"
    assert new["attributes"] == {
        "__post_init__": ["profile_in_progress"], "_start_profile": ["profile_prefix"],
    }  # fmt: skip
    assert new["activities"] == ["platform.activity()"]
    assert new["refuses what torch does"] is True
    assert new["names"] == {"get_parallel().pp_size > 1": "PP-"}


def test_the_scheduler_is_read():
    """Where it counts its steps, and which class changes its weights."""
    old = described(OLD)["Scheduler"]

    assert old == {
        "run_batch": "def run_batch(self, batch)",
        "runs a batch in": [],
        "told of a batch": ["part._profile_batch_predicate"],
        "get_internal_state": None,
        "counts": ["sglang/srt/managers/scheduler.py Scheduler.run_batch"],
        "weights": {"sglang/srt/managers/scheduler.py Scheduler": ["release_memory_occupation"]},
    }


def test_plugins_are_read():
    """Their group, what admits them, how one hooks, and which processes load them."""
    old, new = described(OLD)["plugins"], described(NEW)["plugins"]

    assert old is None
    assert new == {
        "group": "sglang.srt.plugins",
        "admitted by": ["SGLANG_PLUGINS"],
        "register": "def register(cls, target, hook, hook_type=HookType.AFTER, *, source=None)",
        "HookType": {"AFTER": "'after'"},
        "loaded by": [
            "sglang/launch_server.py", "sglang/srt/managers/scheduler.py run_scheduler_process",
        ],
        "loaded before a scheduler is made": True,
    }  # fmt: skip


def test_the_server_and_its_arguments_are_read():
    """The methods of a path and its body, defaults in either place, and the engine's variables."""
    old, new = described(OLD), described(NEW)

    assert old["HTTP"]["/start_profile"] == {
        "methods": ["GET", "POST"], "takes": ["ProfileReqInput | None"],
    }  # fmt: skip
    assert old["HTTP"]["/health"] == {"methods": ["GET"], "takes": []}
    assert old["HTTP"]["/server_info"] is None
    assert (old["ServerArgs"]["tp_size"], old["ServerArgs"]["device"]) == ("1", None)
    assert (new["ServerArgs"]["tp_size"], new["ServerArgs"]["device"]) == (None, "None")
    assert (old["ServerArgs.resolved_dict"], new["ServerArgs.resolved_dict"]) == (False, True)
    assert old["variables"] == ["SGLANG_PROFILE_WITH_STACK", "SGLANG_TORCH_PROFILER_DIR"]


def test_what_a_reply_tells_is_read_with_what_it_needs():
    """A key under two conditions needs both; one that is written without either needs none."""
    old, new = described(OLD)["meta_info"], described(NEW)["meta_info"]

    assert old == {
        "nothing": ["prompt_tokens"],
        "enable_metrics": ["queue_time"],
        "enable_metrics, finished": ["decode_finished_ts"],
        "finished": ["e2e_latency"],
    }
    assert new == {
        "nothing": ["response_sent_to_client_ts"],
        "enable_metrics": ["queue_time"],
        "enable_metrics, finished": ["request_received_ts"],
    }
