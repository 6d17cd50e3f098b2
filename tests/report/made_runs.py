"""Simulated runs of a fleet, or of torchrun's ranks, with planted causes."""

import heapq
import random
from collections import deque
from collections.abc import Collection
from pathlib import Path

from tests.report.folder import Folder

SLOTS = 32
Names = Collection[str]

Turn = tuple[int, float]
"""Tokens to generate, and seconds in a tool afterwards."""
Request = tuple[float, float, float]
"""The times at which it was sent, started and done."""


def serve(trajectories: list[list[Turn]], slots: int = SLOTS) -> list[list[Request]]:
    """Return the requests of each trajectory; each ends when all have progressed by its tokens."""
    asking = [(0.0, number, 0) for number in range(len(trajectories))]
    told: list[list[Request]] = [[] for _ in trajectories]
    waiting: deque[tuple[float, int, int]] = deque()
    running: list[tuple[float, float, float, int, int]] = []
    now = progress = 0.0
    while asking or waiting or running:
        while waiting and len(running) < slots:
            asked, number, turn = waiting.popleft()
            goal = progress + trajectories[number][turn][0]
            heapq.heappush(running, (goal, asked, now, number, turn))
        pace = 0.011 + 0.0003 * len(running)
        done = now + (running[0][0] - progress) * pace if running else float("inf")
        if asking and asking[0][0] <= done:
            at, number, turn = heapq.heappop(asking)
            progress += max(0.0, at - now) / pace if running else 0.0
            now = max(now, at)
            waiting.append((at, number, turn))
            continue
        progress, asked, begun, number, turn = heapq.heappop(running)
        now = done
        told[number].append((asked, begun, now))
        if turn + 1 < len(trajectories[number]):
            heapq.heappush(asking, (now + trajectories[number][turn][1], number, turn + 1))
    return told


def make_fleet(
    path: Path,
    causes: Names = (),
    *,
    seed: int = 1,
    steps: int = 10,
    ranks: int = 8,
    replicas: int = 3,
    trajectories: int = 96,
    rare: float = 1.0,
) -> Path:
    """Write a fleet's run; the causes act in a share *rare* of its steps."""
    draw = random.Random(seed)  # noqa: S311 -- a simulation
    fleet = _Fleet(draw, ranks, replicas, trajectories)
    for step in range(1, steps + 1):
        acting = set(causes) if draw.random() < rare else set()
        fleet.step(step, acting)
    return fleet.folder.write(path, until=fleet.at + 1)


class _Fleet:
    def __init__(self, draw: random.Random, ranks: int, replicas: int, trajectories: int) -> None:
        self.folder, self.draw, self.at = Folder(), draw, 10.0
        self.trajectories = trajectories
        self.driver, self.agent = self.folder.process("driver", 0), self.folder.process("agent", 0)
        self.actors = [self.folder.process("actor", rank, world=ranks) for rank in range(ranks)]
        self.engines = [self.folder.process("rollout", n, replica=n) for n in range(replicas)]
        self.slow_rank, self.slow_replica = draw.randrange(ranks), draw.randrange(replicas)
        self.has_few_slots = draw.random() < 0.5  # otherwise the odd replica gets more requests

    def step(self, step: int, acting: set[str]) -> None:
        """Send weights, roll out, train."""
        began = self.at
        self._sync(step, acting)
        tokens = self._rollout(step, acting)
        for phase, cost in (("reward", 0.0), ("log_prob", 3e-3), ("update_actor", 1e-2)):
            self._train(step, phase, tokens * cost, acting)
            is_gap = "gap" in acting and phase == "log_prob"
            self.at += self.draw.uniform(6, 8) if is_gap else 0.02
        self.folder.span(self.driver, "step", f"step {step}", (began, self.at), step)

    def _sync(self, step: int, acting: set[str]) -> None:
        start, slower = self.at, 7 if "sync" in acting else 1
        self.at += self.draw.uniform(1.2, 1.5) * slower
        for engine in self.engines:
            times = start + 0.01, self.at - 0.01
            self.folder.span(engine, "phase", "weight_sync", times, step)
        self.folder.span(self.driver, "phase", "weight_sync", (start, self.at), step)

    def _rollout(self, step: int, acting: set[str]) -> float:
        """Run every trajectory; return their mean number of tokens."""
        start, odd = self.at, self.slow_replica
        planned = [_turns(self.draw, acting) for _ in range(self.trajectories)]
        homes = [number % len(self.engines) for number in range(self.trajectories)]
        if "replica" in acting and not self.has_few_slots:
            homes = [odd if self.draw.random() < 0.35 else home for home in homes]
        for replica in range(len(self.engines)):
            mine = [number for number, home in enumerate(homes) if home == replica]
            is_slow = "replica" in acting and self.has_few_slots and replica == odd
            told = serve([planned[one] for one in mine], SLOTS // 3 if is_slow else SLOTS)
            for one, requests in zip(mine, told, strict=True):
                name = f"{step}-{one}"
                end = self._trajectory(name, planned[one], requests, start, replica)
                if "reward" in acting:
                    end = self._reward(name, end)
                self.at = max(self.at, end)
        self.at += 0.02
        self.folder.span(self.driver, "phase", "rollout", (start, self.at), step)
        return sum(tokens for turns in planned for tokens, _ in turns) / len(planned)

    def _trajectory(
        self, name: str, turns: list[Turn], requests: list[Request], start: float, replica: int
    ) -> float:
        end = start + requests[-1][2]
        whole = self.folder.span(
            self.agent, "span", "trajectory", (start, end), None, trajectory=name
        )
        for turn, (asked, begun, done) in enumerate(requests):
            self.folder.span(
                self.agent, "span", "request", (start + asked, start + done), None, parent=whole,
                trajectory=name, replica=replica, tokens=turns[turn][0], queued_s=begun - asked,
            )  # fmt: skip
            if turn + 1 < len(requests):
                times = start + done, start + requests[turn + 1][0]
                self.folder.span(
                    self.agent, "span", "tool_call", times, None, parent=whole, trajectory=name,
                    tool="python",
                )  # fmt: skip
        return end

    def _reward(self, name: str, start: float) -> float:
        """Compute the reward of a trajectory within it."""
        end = start + self.draw.uniform(7, 8)
        self.folder.span(self.agent, "span", "reward", (start, end), None, trajectory=name)
        return end

    def _train(self, step: int, phase: str, seconds: float, acting: set[str]) -> None:
        start, end = self.at, self.at + 0.3
        if phase == "reward" and "gc" in acting:
            end += self.draw.uniform(4, 5)
            self.folder.span(self.driver, "span", "gc", (start + 0.1, end - 0.2), step)
        for rank, actor in enumerate(self.actors if seconds else ()):
            took = seconds * self.draw.uniform(0.98, 1.02)
            if phase == "update_actor":
                is_slow = rank == self.slow_rank
                took *= 1.6 if is_slow and "straggler" in acting else 1
                load = self.draw.uniform(6, 7) if is_slow and "data" in acting else 0.05
                self.folder.span(actor, "span", "data_loader", (start, start + load), None)
                took += load
            times = start + 0.004, start + 0.004 + took
            self.folder.span(actor, "phase", phase, times, step)
            end = max(end, times[1] + 0.03)
        self.folder.span(self.driver, "phase", phase, (start, end), step)
        self.at = end


def _turns(draw: random.Random, acting: set[str]) -> list[Turn]:
    turns = []
    for _ in range(draw.choice((1, 2, 2, 3))):
        stalls = "tool" in acting and draw.random() < 0.008
        tool_s = draw.uniform(35, 45) if stalls else draw.uniform(0.1, 0.5)
        turns.append((max(20, int(draw.gauss(420, 110))), tool_s))
    if "tail" in acting and draw.random() < 0.02:
        turns[-1] = draw.randint(2600, 3200), turns[-1][1]
    return turns


def make_torchrun(
    path: Path,
    causes: Names = (),
    *,
    seed: int = 1,
    steps: int = 12,
    ranks: int = 4,
    ended: bool = True,
) -> Path:
    """Write the run of ranks that load data, go forward, meet in backward and optimise."""
    draw = random.Random(seed)  # noqa: S311 -- a simulation
    folder = Folder({"tool": "none", "roles": {"trainer": {}}})
    stems = [folder.process("trainer", rank, world=ranks) for rank in range(ranks)]
    slow, at = draw.randrange(ranks), [10.0] * ranks
    for step in range(1, steps + 1):
        began = list(at)
        for phase, usual in (("data", 0.03), ("forward", 0.5), ("backward", 1.0), ("optim", 0.1)):
            entered = list(at)
            at = [one + usual * draw.uniform(0.98, 1.02) for one in at]
            if phase == "forward" and "gc" in causes:
                folder.span(stems[slow], "span", "gc", (at[slow], at[slow] + 0.5), step)
            planted = {("data", "data"), ("forward", "straggler"), ("forward", "gc")}
            at[slow] += 0.5 * any((phase, cause) in planted for cause in causes)
            if phase == "backward":
                at = [max(at) + draw.uniform(0, 0.001) for _ in at]
            for rank, stem in enumerate(stems):
                folder.span(stem, "phase", phase, (entered[rank], at[rank]), step)
            if phase == "forward" and "gap" in causes:
                at = [one + 0.5 for one in at]
        for rank, stem in enumerate(stems):
            folder.span(stem, "step", f"step {step}", (began[rank], at[rank]), step)
    return folder.write(path, until=max(at) + 1, ended=ended)
