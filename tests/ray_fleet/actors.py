"""Ordinary actors like those of a trainer; they contain no rlprof code."""

import asyncio
import os
import signal
import threading
import time


class Trainer:
    """Sums seeded numbers; the result is the same with and without rlprof."""

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


# A live run of a framework without rlprof: classes with the names and methods of verl's


class WorkerDict:
    """A colocated training worker: one coroutine method makes the actor async."""

    def __init__(self, rank):
        self.rank = rank
        self.total = rank
        self.worker_dict = {"actor_rollout": self}

    def actor_rollout_update_actor(self, step):
        time.sleep(0.2)
        self.total = (1103515245 * self.total + step) % 2**31
        return self.total

    async def update_weights(self):
        pass


class vLLMHttpServer:
    """A rollout server that keeps its engine and the version of its weights."""

    def __init__(self):
        from mini_engine import Engine

        self.engine = Engine(profiler=True)
        self.global_steps = 0

    async def generate(self, prompts):
        await asyncio.sleep(0.6)  # longer than windows take to open
        return self.engine.generate(prompts)

    async def set_global_steps(self, step):
        self.global_steps = step


class Run:
    """Trains on a thread until it is stopped."""

    def __init__(self, ray, workers, servers, train=None):
        self.workers, self.servers, self.step, self.totals = workers, servers, 0, []
        self._ray, self._train, self._stopped = ray, train or self._steps, threading.Event()
        self._thread, self._between = threading.Thread(target=self._loop), threading.Lock()

    def _loop(self):
        while not self._stopped.wait(0.01):
            with self._between:
                self.step += 1
                self._train()

    def _steps(self):
        prompts = [f"{self.step} + 1 ="]
        self._ray.get([server.generate.remote(prompts) for server in self.servers])
        asked = [one.actor_rollout_update_actor.remote(self.step) for one in self.workers]
        self.totals = self._ray.get(asked)
        self._ray.get([server.set_global_steps.remote(self.step) for server in self.servers])

    def is_as_bare(self):
        """Whether the workers' totals equal those of an unprofiled run."""
        with self._between:
            totals = list(range(len(self.workers)))
            for step in range(1, self.step + 1):
                totals = [(1103515245 * total + step) % 2**31 for total in totals]
            return self.totals == totals

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stopped.set()
        self._thread.join()
