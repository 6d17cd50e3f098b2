"""An Engine that is shut down in the midst of its window."""

from __future__ import annotations

import time

import rlprof
from tests.sglang_real.drive import ARGUMENTS, config, engine, run, told
from tests.sglang_real.sessions import session


def main():
    way = ARGUMENTS["way"]
    launch = rlprof.launch(config(), role="rollout", ranks=[0])
    with engine(launch) as one:
        one.generate(input_ids=[1, 2], sampling_params={"max_new_tokens": 2})
        with session(way, one, way=way) as prof:
            for _ in prof.steps((1,)):
                with prof.phase("rollout"):
                    one.generate(input_ids=[1, 5, 6], sampling_params={"max_new_tokens": 5})
                    one.shutdown()
                    began = time.monotonic()
                told(left_s=time.monotonic() - began)


if __name__ == "__main__":
    run(main)
