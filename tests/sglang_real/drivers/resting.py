"""An Engine with plain calls, whose loop rests in between; it is shut down in a window."""

import rlprof
from tests.sglang_real.drive import config, engine, run, told
from tests.sglang_real.sessions import session


def main():
    launch = rlprof.launch(config(), role="rollout", ranks=[0])
    with engine(launch) as one:
        one.generate(input_ids=[1, 2], sampling_params={"max_new_tokens": 2})
        for way in ("worker", "native"):
            with session(way, one, way=way, iterations={"skip": 1, "count": 2}) as prof:
                for step in prof.steps((1, 2)):
                    with prof.phase("rollout"):
                        found = one.generate(
                            input_ids=[1, 5, 6],
                            sampling_params={"max_new_tokens": 9, "ignore_eos": True},
                        )
                    told(session=way, step=step, tokens=len(found["output_ids"]))
        with session("shut down", one, way="worker") as prof:
            for _ in prof.steps((1,)):
                with prof.phase("rollout"):
                    one.generate(input_ids=[1, 5, 6], sampling_params={"max_new_tokens": 5})
                    one.shutdown()


if __name__ == "__main__":
    run(main)
