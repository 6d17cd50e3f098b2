"""Sessions of rlprof on one engine, as the drivers run them one after another."""

import asyncio
from contextlib import contextmanager

import rlprof
from tests.sglang_real.drive import batch, config, framework, told

SIX = range(1, 7)
LENGTHS = [14, 5]
"""Tokens of the two requests of a window: more forward steps than are asked for."""


@contextmanager
def session(name, handle, *, ranks=(0,), role=None, tool="torch", contents=(), **options):
    """Open a run in which *handle* is recorded with *options*; report its folder."""
    torch = {"torch": {"contents": [*contents]}} if contents else {}
    asked = config(sglang=options, role=role or {}, tool=tool, tools=torch)
    with rlprof.open(asked, role="driver") as prof:
        prof.attach(handle, role="rollout", replica=0, ranks=list(ranks))
        told(session=name, run=str(prof.run_dir))
        yield prof


async def windows(name, manager, *, steps=(1, 2), lengths=LENGTHS, **options):
    """Record a rollout of each step; report how many forward steps the framework counted."""
    with session(name, manager, **options) as prof:
        for step in prof.steps(steps):
            before = await counted(manager)
            async with prof.phase("rollout"):
                tokens = await batch(manager, f"{name}-{step}", lengths)
            await settled(manager)
            told(session=name, step=step, ran=await counted(manager) - before, tokens=tokens)


async def counted(manager):
    """Return how many forward steps the first replica has run."""
    return (await framework(manager))[0]["steps"]


async def settled(manager):
    """Wait until a scheduler is idle: with overlap, one more step follows the last one."""
    before = -1
    while before != (now := await counted(manager)):
        before = now
        await asyncio.sleep(0.05)
