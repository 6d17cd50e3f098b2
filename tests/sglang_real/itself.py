"""What a driver has SGLang itself say, with no rlprof in between: what the adapter rests on."""

from __future__ import annotations

import asyncio
import inspect

from tests.sglang_real.drive import ARGUMENTS, answer, framework, get, post, post_request, told

FOLDER = f"{ARGUMENTS.get('home')}/itself"
LENGTHS = {"itself-0": 6, "itself-1": 4, "itself-2": 5, "itself-3": 3}
STAGES = ["no stage", '{"any": "text"}']
ASKED = {
    "output_dir": FOLDER,
    "with_stack": False,
    "record_shapes": False,
    "profile_stages": STAGES,
}


async def itself(manager):
    """Profile four requests by SGLang's own means; tell all that it says."""
    await start_profile(manager, **ASKED)
    answers = await asyncio.gather(*(answer(manager, *one) for one in LENGTHS.items()))
    await manager.stop_profile()
    lost = await aborted(manager)
    states = await manager.get_internal_state()
    told(session="itself", answers=answers, lost=lost, states=states)


def itself_over_http(url):
    """Do the same with a server."""
    post(f"{url}/start_profile", ASKED)
    answers = [post_request(url, *one) for one in LENGTHS.items()]
    post(f"{url}/stop_profile", {})
    info = get(f"{url}/server_info")
    states = info.pop("internal_states")
    told(session="itself", answers=answers, states=states, info=info)


async def aborted(manager):
    """Give a request up when it has run for a while; return what is said of it."""
    before = max(one["steps"] for one in await framework(manager))
    asked = asyncio.create_task(answer(manager, "itself-lost", 450))
    while max(one["steps"] for one in await framework(manager)) < before + 5:
        await asyncio.sleep(0.01)
    manager.abort_request("itself-lost")
    return await asked


async def start_profile(manager, **asked):
    """Start the profiler in either shape: one object since 0.5.15, keyword arguments before."""
    if "req" in inspect.signature(manager.start_profile).parameters:
        from sglang.srt.managers.io_struct import ProfileReq

        return await manager.start_profile(ProfileReq(**asked))
    return await manager.start_profile(**asked)
