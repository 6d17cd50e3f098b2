"""Servers as slime has them, by rollout id: `python as_slime.py MODEL '{…}' PORT PORT …`."""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
from typing import Any

from server import generate, wait_for

import rlprof


def serve(arguments: dict[str, Any]) -> None:
    """Be a server, in a process of its own."""
    from sglang.srt.entrypoints.http_server import launch_server
    from sglang.srt.server_args import ServerArgs

    launch_server(ServerArgs(**arguments))


def start(model: str, more: dict[str, Any], rank: int, port: int) -> Any:
    """Start a server as slime's engine actors do."""
    launch = rlprof.launch("profile.yaml", role="rollout", ranks=[rank])
    os.environ |= launch.env
    arguments = {"model_path": model, "port": port, **more, **launch.engine_args}
    server = multiprocessing.get_context("spawn").Process(target=serve, args=(arguments,))
    server.start()
    return server


def generate_rollout(prof: rlprof.Session | rlprof.Off, rollout_id: int, at: list[str]) -> None:
    """Stand for slime's rollout function; whatever is raised here, the servers are stopped."""
    prof.step(rollout_id)
    with prof.phase("rollout"):
        for address in at:  # slime asks its router, which asks one of them
            generate(address)


def main(model: str, more: dict[str, Any], *ports: str) -> None:
    """Roll out three times, the second of which the config has recorded."""
    servers = [start(model, more, rank, int(port)) for rank, port in enumerate(ports)]
    addresses = [f"http://127.0.0.1:{port}" for port in ports]
    for address, server in zip(addresses, servers, strict=True):
        wait_for(f"{address}/health", server.is_alive)
    with rlprof.open("profile.yaml", role="driver") as prof:
        for rank, address in enumerate(addresses):  # the servers': a router would pass on to one
            prof.attach(address, role="rollout", replica=rank, ranks=[rank])
        for rollout_id in range(1, 4):
            generate_rollout(prof, rollout_id, addresses)
    for server in servers:
        server.terminate()
        server.join()


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.argv[2]), *sys.argv[3:])
