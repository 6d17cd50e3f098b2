"""vLLM's HTTP server, as frameworks start it: by the command line that the launch gives."""

import os
import subprocess
import sys
from pathlib import Path

import rlprof
from rlprof_vllm import server_args
from rlprof_vllm._installed import sources_here, version
from tests.ports import free_port
from tests.real_drivers import post, wait_until_up
from tests.vllm_real.drive import ARGUMENTS, config, told

FLAGS = (
    "--load-format=dummy --enforce-eager --dtype=float32 --max-model-len=256 --max-num-seqs=8 "
    f"--kv-cache-memory-bytes={32 << 20} --host=127.0.0.1"
).split()


def generate(url, tokens):
    body = {
        "model": ARGUMENTS["model"],
        "prompt": "hello",
        "max_tokens": tokens,
        "ignore_eos": True,
    }
    return post(f"{url}/v1/completions", body)["usage"]["completion_tokens"]


def windows(url, name, chosen, lengths):
    with rlprof.open(chosen, role="driver") as prof:
        prof.attach(url, role="rollout")
        for step in prof.steps(range(1, len(lengths) + 1)):
            with prof.phase("rollout"):
                told(session=name, step=step, tokens=generate(url, lengths[step - 1]))
    told(session=name, run=prof.run_dir)


def dies(url, server):
    done = []
    with rlprof.open(config(vllm={"way": "native"}), role="driver") as prof:
        prof.attach(url, role="rollout")
        for step in prof.steps([1, 2]):
            with prof.phase("rollout"):
                if step == 1:
                    generate(url, 3)
                    os.killpg(server.pid, 9)
                    server.wait()
            done.append(step)
    told(session="dies", run=prof.run_dir, done=done)


def main():
    told(version=version(sources_here()))
    launch = rlprof.launch(config(), role="rollout")
    url = f"http://127.0.0.1:{free_port()}"
    argv = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", *FLAGS]
    argv += ["--model", ARGUMENTS["model"], "--port", url.rpartition(":")[2], *server_args(launch)]
    env = os.environ | launch.env | {"VLLM_SERVER_DEV_MODE": "1"}
    with Path(ARGUMENTS["home"], "server.log").open("wb") as log:
        server = subprocess.Popen(argv, env=env, stdout=log, stderr=log, start_new_session=True)
    try:
        wait_until_up(url, server)
        generate(url, 4)
        windows(url, "native", config(vllm={"way": "native"}), [5, 8, 3])
        windows(url, "worker", config(), [5, 8])
        dies(url, server)
    finally:
        if server.poll() is None:
            os.killpg(server.pid, 9)
    told(done=True)


if __name__ == "__main__":
    main()
