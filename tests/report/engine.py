"""An engine as a simulation: so many slots, first come first served."""

from __future__ import annotations

import heapq
from collections import deque

SLOTS = 32

Turn = tuple[int, float]
"""Tokens to write, and seconds in a tool afterwards."""
Request = tuple[float, float, float]
"""When it was asked, begun and done."""


def serve(trajectories: list[list[Turn]], slots: int = SLOTS) -> list[list[Request]]:
    """Return the requests of each trajectory.

    A token takes longer in a larger batch, and all requests in it progress alike. So each ends when
    the common progress has grown by its tokens.
    """
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
