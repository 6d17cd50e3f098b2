"""An LLM in this process, as in trainers that generate and train in turns."""

import os

os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"  # before vLLM is imported

import torch

import rlprof
from rlprof_stacks import Stacks
from tests.vllm_real.drive import ARGUMENTS, config, told
from tests.vllm_real.tiny import SMALL, TABLE


def generate(llm, *lengths):
    from vllm import SamplingParams

    prompts = [{"prompt_token_ids": [1, 5 + n, 6]} for n in range(len(lengths))]
    chosen = [SamplingParams(max_tokens=tokens, ignore_eos=True) for tokens in lengths]
    return [len(one.outputs[0].token_ids) for one in llm.generate(prompts, chosen, use_tqdm=False)]


def recorded(llm, name, chosen, steps=(1, 2, 3), ranks=(1,)):
    """Record *steps* of the rank this replica holds, each with requests of its own."""
    with rlprof.open(chosen, role="driver") as prof:
        prof.attach(llm, role="rollout", replica=1, ranks=ranks, world_size=2)
        for _ in prof.steps(steps):
            with prof.phase("rollout"):
                got = generate(llm, 5, 3)
    told(session=name, run=prof.run_dir, tokens=got)


def seed_table(llm):
    """Record with each combination of verl's options: stacks, shapes, step 2, ranks [1] or all."""
    for way, stack, shapes, ranks in TABLE:
        contents = ["cpu", *(["stack"] if stack else []), *(["shapes"] if shapes else [])]
        chosen = config(
            steps=[2],
            role={"ranks": ranks},
            vllm={"way": way},
            tools={"torch": {"contents": contents}},
        )
        recorded(llm, f"{way} {stack} {shapes} {ranks}", chosen)


def anothers_profiler(llm):
    """Open a window of either way while the process has a torch profiler of its own."""
    for way in ("worker", "native"):
        chosen = config(steps=[1], role={"ranks": "all"}, vllm={"way": way})
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as theirs:
            recorded(llm, f"{way} beside another", chosen, steps=(1,))
        told(session=f"{way} beside another", events=len(theirs.events()))


def any_tool(llm):
    """Record the worker with a third-party tool, and with one that cannot work here."""
    rlprof.register("tool", "stacks", Stacks)
    chosen = config(steps=[1], role={"ranks": "all"}, tool=["stacks", "torch_memory"])
    recorded(llm, "any tool", chosen, steps=(1,))


def training_too(llm):
    """Record the trainer's own phase in the same process and step."""
    chosen = config(steps=[1, 2])
    chosen["roles"] = {
        "actor": {"phases": ["update"]},
        "rollout": {"engine": "vllm", "phases": ["rollout"]},
    }
    with rlprof.open(chosen, role="actor", rank=0, world_size=1) as prof:
        prof.attach(llm, role="rollout")
        for _ in prof.steps([1, 2]):
            with prof.phase("rollout"):
                generate(llm, 4)
            with prof.phase("update"):
                torch.ones(64, 64) @ torch.ones(64, 64)
    told(session="training", run=prof.run_dir)


def main():
    from vllm import LLM

    wanted = config(tools={"torch": {"contents": ["cpu"]}})
    launch = rlprof.launch(wanted, role="rollout")
    llm = LLM(model=ARGUMENTS["model"], **SMALL, **launch.engine_args)
    generate(llm, 8)
    seed_table(llm)
    anothers_profiler(llm)
    any_tool(llm)
    training_too(llm)
    told(tokens=generate(llm, 6))


if __name__ == "__main__":
    main()
    told(done=True)
