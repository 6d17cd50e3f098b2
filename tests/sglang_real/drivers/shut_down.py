"""An Engine that is shut down in the midst of its window."""

from __future__ import annotations

import rlprof
from tests.sglang_real.drive import config, engine, run
from tests.sglang_real.sessions import session


def main():
    launch = rlprof.launch(config(), role="rollout", ranks=[0])
    with engine(launch) as one:
        one.generate(input_ids=[1, 2], sampling_params={"max_new_tokens": 2})
        with session("worker", one, way="worker") as prof:
            for _ in prof.steps((1,)):
                with prof.phase("rollout"):
                    one.generate(input_ids=[1, 5, 6], sampling_params={"max_new_tokens": 5})
                    one.shutdown()


if __name__ == "__main__":
    run(main)
