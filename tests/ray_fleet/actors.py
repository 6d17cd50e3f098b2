"""Ordinary actors, as a trainer has them; nothing of rlprof is in them."""

from __future__ import annotations

import asyncio
import os
import signal
import time


class Trainer:
    """Sums seeded numbers; what comes out is the same with rlprof and without."""

    def __init__(self, rank=0):
        self.total = rank

    def update(self, step, seconds=0.01):
        time.sleep(seconds)
        self.total = (1103515245 * self.total + step) % 2**31
        return self.total

    def pid(self):
        return os.getpid()

    def die(self):
        os.kill(os.getpid(), signal.SIGKILL)


class Untouched(Trainer):
    """An actor that no other test uses."""


class AsyncTrainer(Trainer):
    """The same, as an async actor."""

    async def update(self, step, seconds=0.01):
        await asyncio.sleep(seconds)
        self.total = (1103515245 * self.total + step) % 2**31
        return self.total
