"""SGLang's HTTP server, as frameworks start it: by its command line."""

from pathlib import Path

import rlprof
import rlprof_sglang
from tests.sglang_real.drive import ARGUMENTS, config, post_request, run, server, told
from tests.sglang_real.sessions import session


def main():
    launch = rlprof.launch(config(), role="rollout", ranks=[0])
    told(flags=rlprof_sglang.server_args(launch))
    with server(launch) as (url, process):
        post_request(url, "first", 3)
        three = {"iterations": {"skip": 2, "count": 3}}
        rollouts("worker", url, way="worker", **three)
        rollouts("native", url, way="native", **three)
        dies(url, process)


def rollouts(name, url, **options):
    with session(name, url, **options) as prof:
        for step in prof.steps((1, 2)):
            with prof.phase("rollout"):
                found = post_request(url, f"{name}-{step}", 9)
            told(session=name, step=step, tokens=len(found["output_ids"]))


def dies(url, process):
    """Kill the server in a window; the steps go on."""
    with session("dies", url, way="native") as prof:
        for step in prof.steps((1, 2)):
            with prof.phase("rollout"):
                if step == 1:
                    post_request(url, "dies", 4)
                    kill(process)
            told(session="dies", done=step)


def kill(process):
    import psutil

    for one in [*psutil.Process(process.pid).children(recursive=True), process]:
        one.kill()
    process.wait()
    Path(ARGUMENTS["home"], "killed").touch()


if __name__ == "__main__":
    run(main)
