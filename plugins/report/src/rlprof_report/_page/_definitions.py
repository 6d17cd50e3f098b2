"""How each figure of a report is made: its inputs, its formula, what is left out of it."""

from __future__ import annotations

import attrs


@attrs.frozen
class Definition:
    """One of them."""

    name: str
    inputs: str
    """`spans`, `manifest`, `traces`, `requests`, `counters`, or several."""
    formula: str


_CLEAN = "Medians: of clean steps, not of recorded, touched, warm-up or unfinished ones."
_WINDOW = "In the window, from edge to edge of its phase."

DEFINITIONS = {
    1: Definition(
        "time of a phase", "spans",
        "Sum of the outermost phases of that name on the leading process, cut at the edges of the "
        "step. Unaccounted: the step less the union of its phases. Where phases overlap the union "
        f"counts, not the sum. {_CLEAN}",
    ),
    2: Definition(
        "wait for the slowest rank", "spans of the ranks",
        "Longest time of a rank in the phase less the median of the others (what can be gained), "
        "and less the mean (how long the ranks wait). Between phases, waits for the last rank do "
        f"not count. Phases in which ranks end together are marked, not blamed. {_CLEAN}",
    ),
    5: Definition(
        "tail", "spans of trajectories",
        "v(q): when the share q of trajectories has ended, at least one being left. The tail is "
        "the last end less v(q). Late: those that end after v(0.95), or after v(0.9) if that tail "
        "is 4 times as long; compared by means. Bound: the last end less the last one if none "
        "takes longer than the median one; at least the tail of the late, at most twice that. Of "
        "trajectories that began in the rollout phase, cut at its end.",
    ),
    6: Definition(
        "slots", "spans of requests",
        "For each replica, slots x time by content: running; else empty because finished, before "
        "the start, queued, in tools, tail, outside; the first that applies. Slots: the most "
        "requests at once. The shares add up to 1. A request runs from its end in the queue, where "
        "it noted one, to its end.",
    ),
    7: Definition(
        "replicas end together", "spans of requests",
        "Last end of a replica less the mean of the ends; or the same when nine in ten of its "
        "trajectories had ended, if that is less. Of replicas that served requests.",
    ),
    8: Definition(
        "tools", "spans of trajectories",
        "Seconds in tools of the trajectory that ends last, and of the median one; time in which "
        "trajectories ran and no request did. Rewards: how much earlier the last one would end "
        "without its spans `reward`. Of the trajectories of figure 5.",
    ),
    9: Definition(
        "critical path", "spans",
        "Backwards from the end of the step: the step waited for whatever ended last; then on from "
        "its start. Where ranks meet: from then on the phases of the rank that came last. In the "
        "rollout: the parts of the trajectory that ends last. The parts tile the step.",
    ),
    10: Definition(
        "what would help", "spans",
        "Tail (5), even replicas (7), slowest rank (2), tools (8), weights sent while other work "
        "runs, no gaps, one-step off-policy: T - max(rollout + sync, rest), no recording (13). "
        "Each is an upper bound on its own; do not add two of them.",
    ),
    11: Definition(
        "asynchronous steps", "spans",
        "Trainer idle: time in phases that wait or bring weights (if none waits: outside of "
        "updates), over T. Rollout idle: 1 less the share of slots that run; where requests go on "
        "over the edges of steps, the time without any. Overlap: time in both over the shorter. "
        "Lag: the trainer's version less the trajectory's.",
    ),
    12: Definition(
        "bubbles", "spans, manifest (devices)",
        "Devices of a role x (T - busy), by the phase of the leading process at that time. Busy: a "
        "process that holds the device is in a phase, or its replica serves a request. Of roles "
        "whose processes name their devices.",
    ),
    13: Definition(
        "cost of profiling", "manifest",
        "Start: opened to started. Stop: closed less its seconds, to closed. Recorded: a window is "
        "open in the step. Touched: a configure, start or stop, or an export on the leading "
        "process, overlaps it. Cost: the union of configures, starts and stops in the step, an "
        "upper bound.",
    ),
    14: Definition(
        "tokens per second, requests in flight", "spans (tokens)",
        "Tokens of each request spread evenly over its time, in 200 bins.",
    ),
    15: Definition(
        "queue, first token, preemptions", "spans of requests, traces",
        "p50 and p99 over the requests that noted them; sum of preemptions.",
    ),
    16: Definition(
        "device time", "traces",
        "Compute: union of compute kernels. Exposed communication: communication less compute. "
        "Exposed copies: copies less both. Idle: from the first device event to the last, less the "
        f"union of all. {_WINDOW}",
    ),
    17: Definition(
        "why devices idle", "traces",
        "The gap before kernel k: if its launch call began in the gap, the host is the cause until "
        "10 us after that. The rest, the kernel waited for other work. Other gaps below 10 us are "
        f"short. {_WINDOW}",
    ),
    18: Definition(
        "late ranks in collectives", "traces",
        "For a collective of two ranks or more: the longest call less the rank's own. Votes: how "
        f"often a rank was last. {_WINDOW}",
    ),
    19: Definition(
        "top kernels and host operators", "traces",
        "By role: total, count, median; host operators by their time less their children's. "
        f"{_WINDOW}",
    ),
    20: Definition("memory", "traces", f"Peak of allocated and reserved bytes. {_WINDOW}"),
}  # fmt: skip
"""By the number that the captions of the page, and our docstrings, call a figure by."""
