"""Shared by drivers of real engines: arguments from the test, and messages to it."""

import json
import os
import time
import urllib.request
from pathlib import Path

ARGUMENTS = json.loads(os.environ.get("DRIVE", "{}"))
"""Arguments from the test: `home`, `model`, and others that the driver reads."""

UP_S = 240


def config_of(engine, changes):
    """Return a config: every step, and all replicas with that engine and the tool torch."""
    options = changes.pop(engine, {})
    return {
        "run_dir": f"{ARGUMENTS['home']}/runs",
        "tool": "torch",
        "steps": {"every": 1},
        "roles": {"rollout": {"engine": engine, **changes.pop("role", {})}},
        "engines": {engine: options},
        "limits": {"start_timeout_s": 60},  # torch is imported in an engine's first start
    } | changes


def told(**said):
    """Leave a message for the test."""
    with Path(ARGUMENTS["home"], "told.jsonl").open("a") as file:
        file.write(json.dumps(said, default=str) + "\n")


def post(url, body):
    """Post JSON; return the answer, which need not be JSON."""
    head = {"Content-Type": "application/json"}
    request = urllib.request.Request(url, json.dumps(body).encode(), head)  # noqa: S310
    with urllib.request.urlopen(request, timeout=120) as reply:  # noqa: S310 -- our own
        text = reply.read().decode()
    return json.loads(text) if text.startswith(("{", "[")) else text


def wait_until_up(url, server):
    """Wait until a server answers."""
    deadline = time.monotonic() + UP_S
    while time.monotonic() < deadline and server.poll() is None:
        try:
            urllib.request.urlopen(f"{url}/health", timeout=5).close()  # noqa: S310
        except OSError:
            time.sleep(0.3)
        else:
            return
    raise SystemExit("the server did not come up")
