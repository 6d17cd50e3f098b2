"""An analysis of any size, with any names, and content in every section."""

import random

from rlprof_report import values as v
from rlprof_report.device import values as d
from rlprof_report.values import step as s

PHASES = {"weight_sync": 1.5, "rollout": 62.0, "ref_log_prob": 3.6, "update_actor": 13.0}


def made(*, steps=12, ranks=16, replicas=4, odd=str):
    """Return an analysis of *steps* steps; *odd* changes every name in it."""
    rnd = random.Random(1)  # noqa: S311
    names = {odd(name): usual for name, usual in PHASES.items()}
    all_steps, lanes, at = [], {}, 0.0
    for number in range(1, steps + 1):
        step = _step(
            rnd, number, at, names=names, ranks=ranks, replicas=replicas, odd=odd,
            slow=number == min(7, steps),
        )  # fmt: skip
        for phase in step.phases:
            lanes.setdefault(odd("driver 0"), []).append((phase.name, phase.start_s, phase.end_s))
        for rank in range(ranks):
            for phase in step.phases[2:]:
                end = phase.end_s - rnd.random() * 0.1 * phase.seconds
                bar = (phase.name, phase.start_s + 0.01 * rnd.random(), end)
                lanes.setdefault(odd(f"actor {rank}"), []).append(bar)
        all_steps.append(step)
        at = step.start_s + step.seconds
    clean = tuple(step for step in all_steps if step.state == "clean")
    median = sorted(step.seconds for step in clean)[len(clean) // 2] if clean else None
    slow = max(clean, key=lambda step: step.seconds, default=None)
    return v.Analysis(
        run=f"runs/{odd('grpo')}", run_id=odd("20261123-grpo-7b"), state="ended",
        epoch_ns=1_795_440_000_000_000_000, leader=odd("driver-0-node"), whose=odd("driver"),
        steps=tuple(all_steps),
        clean=v.Clean(
            tuple(step.step for step in clean),
            {
                state: tuple(step.step for step in all_steps if step.state == state)
                for state in dict.fromkeys(step.state for step in all_steps) if state != "clean"
            },
            median, median,
        ),
        phases=tuple(
            v.PhaseSummary(name, usual, usual, usual * 1.1, usual / 80, 9, 0.2, odd("actor 5"))
            for name, usual in names.items()
        ),
        findings=(
            v.Finding(
                "tail", odd("The last 5 % of trajectories hold step 7 up by 26.6 s."),
                (odd("They write 2.5 times as many tokens."), "Replicas wait 31 % of slot time."),
                26.6, 26.6, 0.4, (slow.step,), (odd("trajectory 7-113"), "replica 2"),
                "rlprof capture runs/grpo --phase " + odd("rollout"),
            ),
        ) if slow else (),
        verdict=odd("Step 7 took 83 s, 27 s more than its neighbours: a long tail held it up."),
        ranks=tuple(_table(rnd, name, all_steps, ranks, odd) for name in list(names)[2:]),
        lanes=tuple(v.Lane(f"{title}-h", title, tuple(bars)) for title, bars in lanes.items()),
        touches=(
            s.Touch("start", odd("actor 0"), odd("torch"), "3/rollout", 0.5, 1.4, "driver 0-h"),
        ),
        cost_s=1.8, cost_note="Recorded steps take 1.2 s longer (0.4 to 2.0).",
        counters=tuple(
            v.Counter(
                odd(f"actor {rank}"), name, "", times, tuple(rnd.random() * top for _ in times)
            )
            for name, top in (("rss_bytes", 2e9), ("device0_busy", 1.0), ("requests_running", 48))
            for rank in range(min(ranks, 12 if name == "rss_bytes" else 3))
            for times in [tuple(float(second) for second in range(0, 200, 2))]
        ),
        captures=(
            {"window": "3/rollout", "target": odd("rollout 0"), "tool": "torch", "state": "lost",
             "notes": [odd("its process was killed")]},
            {"window": "3/rollout", "target": "rollout 1", "tool": "torch", "state": "whole"},
        ),
        clocks="Two hosts, by measured offsets: at most 1.1 ms apart.",
        notes=(odd("2 lines of spans/actor-3.jsonl could not be read"),),
        device=_device(odd),
    )  # fmt: skip


def _step(rnd, number, at, *, names, ranks, replicas, odd, slow):
    """Return one step with consecutive phases and a tenth of a second outside them."""
    phases, begin = [], at
    for place, (name, usual) in enumerate(names.items()):
        took = usual * rnd.uniform(0.9, 1.1) * (1.4 if slow and place == 1 else 1)
        phases.append(s.PhaseTime(name, took, begin, begin + took))
        begin += took
    state = {1: "warm-up", 3: "recorded", 4: "touched"}.get(number, "clean")
    rolled = phases[1]
    end = rolled.seconds
    return s.Step(
        number, at, begin + 0.1 - at, state, tuple(phases), 0.1,
        overlaps=(s.Overlap(phases[2].name, phases[3].name, 0.0),),
        ranks=tuple(
            s.Ranks(odd("actor"), phase.name, ranks, phase.seconds * 0.95, phase.seconds, 5,
                    odd("actor 5"), 0.4, 0.5, meets=phase is phases[2])
            for phase in phases[2:]
        ),
        frontier=tuple(s.Stage(odd("actor"), phase.name, phase.seconds) for phase in phases[2:]),
        rollout=s.Rollout(
            rolled.name, rolled.start_s, rolled.end_s, 256, 480, 200_000, 200_000 / end,
            {"p50": end * 0.4, "p90": end * 0.6, "p99": end * 0.9, "max": end},
            {"0.9": end * 0.4, "0.95": end * 0.3, "0.99": end * 0.1}, end * 0.35,
            s.Late((odd("7-113"), odd("7-12")), 20.0, 2.0, 0.5, 2.5),
            tuple(
                s.Replica(odd(f"replica {at}"), 48, 120, 50_000, end * (1 - 0.05 * at),
                        0.55, 0.01, 0.04, 0.05, 0.3 - 0.04 * at, 0.05 + 0.04 * at)
                for at in range(replicas)
            ),
            end * 0.1, 0.55, 3.0, 1.0, 0.4, odd("7-113"),
            ended=tuple(end * (at / 200) ** 0.7 * (0.6 if at < 190 else 1) for at in range(1, 201)),
            tokens_rate=tuple(4000 * (1 - at / 100) ** 0.5 for at in range(100)),
            in_flight=tuple(190 * (1 - at / 100) for at in range(100)),
            queue_s={"p50": 0.1, "p99": 4.0}, first_token_s={"p50": 0.2, "p99": 4.2},
            preemptions=3, tools_by_name={odd("python"): 130.0, odd("search"): 24.0},
        ),
        path=(
            *(s.PathPart(one.name, one.start_s, one.end_s, odd("rank 5")) for one in phases),
            s.PathPart("between phases", begin, begin + 0.1),
        ),
        helps=(s.Help("tail", end * 0.3, odd("the last 5 % end with the others, nothing slows")),
               s.Help("slowest rank", 0.4, "the median rank's work is what it would do")),
        flow=s.Flow(0.2, 0.3, 0.5, {"p50": 1.0, "p99": 2.0}, odd("Move devices to the trainer."))
        if slow else None,
        bubbles=(s.Bubble(odd("actor"), "waits for rollout", 900.0),), tokens=200_000,
    )  # fmt: skip


def _table(rnd, name, steps, ranks, odd):
    rows = tuple(
        tuple(
            None if rnd.random() < 0.01 else rnd.uniform(9.8, 10.2) * (1.2 if rank == 5 else 1)
            for _ in steps
        )
        for rank in range(ranks)
    )
    return v.RankTable(odd("actor"), name, tuple(range(ranks)), tuple(s.step for s in steps), rows)


def _device(odd):
    time = d.Temporal(10.0, 6.0, 2.5, 1.5, 1.2, 0.3)
    top = tuple(
        d.TopName(odd(f"ampere_bf16_s16816gemm_{at}"), 3.0 - at, 100, 0.03, 0.3, "compute")
        for at in range(3)
    )
    peaks = (d.MemoryPeak("cuda:0", 40_000_000_000, 60_000_000_000),)
    idle = d.Idle(0.8, 0.5, 0.1, 0.1)
    return d.Device(
        (d.CaptureDevice("traces/a.json.gz", "7/update_actor", odd("actor 0"), odd("actor"), 0,
                         900, 0, time, idle, top, top, peaks),),
        (d.RoleDevice(odd("actor"), 1, time, idle, top, top, peaks),),
        (d.LateRank(odd("actor"), "7/update_actor", 5, 1.2, 30, 33),),
        (d.RequestTimes(odd("replica 0"), 40, 38, 0.1, 4.0, 0.2, 4.2, None),),
        (odd("traces/b.json.gz: is cut in the middle"),),
    )  # fmt: skip
