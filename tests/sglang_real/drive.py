"""Shared by the drivers: engines launched as rlprof asks, and requests for them.

A driver is a process of its own, so that the tests do not die with an engine: SGLang kills
the process that hosts it when a scheduler fails.
"""

import asyncio
import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

from tests.ports import free_port
from tests.real_drivers import ARGUMENTS, config_of, post, told, wait_until_up
from tests.sglang_real.tiny import SMALL, one_replica


def config(**changes):
    """Return a config: every step, all replicas by `sglang` and the tool torch."""
    return config_of("sglang", changes)


@contextmanager
def engine(launch=None, **more):
    """Start an Engine in this process; its loop runs only during a call."""
    import sglang

    started = sglang.Engine(**_arguments(launch, more))
    try:
        yield started
    finally:
        started.shutdown()


@contextmanager
def tokenizer_manager(launch=None, **more):
    """Start a TokenizerManager on the running loop, without an Engine, as verl does."""
    from sglang.srt.entrypoints.engine import Engine
    from sglang.srt.server_args import ServerArgs
    from sglang.srt.utils import kill_process_tree

    asyncio.get_running_loop()
    manager, _, _, _, watchdog, *_ = Engine._launch_subprocesses(
        server_args=ServerArgs(**_arguments(launch, more)),
        init_tokenizer_manager_func=Engine.init_tokenizer_manager_func,
        run_scheduler_process_func=Engine.run_scheduler_process_func,
        run_detokenizer_process_func=Engine.run_detokenizer_process_func,
    )
    try:
        yield manager
    finally:
        watchdog.stop()  # it would take the end of the schedulers for a crash, and end this process
        kill_process_tree(os.getpid(), include_parent=False, wait_timeout=60)


@contextmanager
def server(launch=None, **more):
    """Start SGLang's HTTP server by its command line; yield its address and its process."""
    import psutil

    url = f"http://127.0.0.1:{free_port()}"
    given = _arguments(launch, more) | {"host": "127.0.0.1", "port": url.rpartition(":")[2]}
    argv = [sys.executable, "-m", "sglang.launch_server"]
    for name, value in given.items():
        argv += [f"--{name.replace('_', '-')}", *([] if value is True else [str(value)])]
    with Path(ARGUMENTS["home"], "server.log").open("wb") as log:
        process = subprocess.Popen(argv, stdout=log, stderr=log)
    try:
        wait_until_up(url, process)
        yield url, process
    finally:
        if process.poll() is None:
            for one in [*psutil.Process(process.pid).children(recursive=True), process]:
                one.kill()
        process.wait()


async def generate(manager, name, tokens):
    """Send one request as verl does; return the number of tokens."""
    from sglang.srt.managers.io_struct import GenerateReqInput

    request = GenerateReqInput(
        rid=name,
        input_ids=[1, 5 + len(name), 6],
        sampling_params={"max_new_tokens": tokens, "ignore_eos": True},
    )
    return len((await anext(manager.generate_request(request, None)))["output_ids"])


async def batch(manager, name, lengths):
    """Send several requests at once."""
    asked = (generate(manager, f"{name}-{n}", tokens) for n, tokens in enumerate(lengths))
    return await asyncio.gather(*asked)


async def framework(manager):
    """Return what the framework's plugin says in the scheduler of each DP rank: `pid`, `steps`."""
    return [state["framework"] for state in await manager.get_internal_state()]


async def start_profile(manager, **asked):
    """Start the profiler."""
    from sglang.srt.managers.io_struct import ProfileReq

    return await manager.start_profile(ProfileReq(**asked))


def post_request(url, name, tokens):
    """Send one request to a server; return SGLang's whole answer."""
    chosen = {"max_new_tokens": tokens, "ignore_eos": True}
    asked = {"rid": name, "input_ids": [1, 5 + len(name), 6], "sampling_params": chosen}
    return post(f"{url}/generate", asked)


def run(main):
    """Run a driver, a function or a coroutine function, to its end."""
    running = main()
    if asyncio.iscoroutine(running):
        asyncio.run(running)
    told(done=True)


def _arguments(launch, more):
    """Merge the arguments of an engine, and set the environment for its launch."""
    if launch is not None:
        os.environ |= launch.env
    small = SMALL if "dp_size" in more else one_replica()
    given = {"model_path": ARGUMENTS["model"], **small}
    given |= (launch.engine_args if launch is not None else {}) | more
    ranks = given.get("tp_size", 1)
    if _version() > (0, 5, 18):  # which wants cores named for all ranks, not for those of TP alone
        ranks *= given.get("dp_size", 1)
    if ranks > 1:  # by default it runs no more ranks than there are sockets
        cores = sorted(os.sched_getaffinity(0))
        chosen = (str(cores[rank % len(cores)]) for rank in range(ranks))
        os.environ["SGLANG_CPU_OMP_THREADS_BIND"] = "|".join(chosen)
    return given


def _version():
    from importlib.metadata import version

    return tuple(map(int, version("sglang").split(".")[:3]))
