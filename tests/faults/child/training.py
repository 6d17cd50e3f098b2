"""A small seeded training loop; FAULTS_BARE in the environment runs it without rlprof."""

import contextlib
import hashlib
import io
import os
import random
import struct
import time


def open_session(**how):
    """Open rlprof with the config in RLPROF_CONFIG, or a stand-in for a job without rlprof."""
    if "FAULTS_BARE" in os.environ:
        return Bare()
    import rlprof

    return rlprof.open(**how)


class Bare(contextlib.nullcontext):
    """The methods of a session in a job without rlprof."""

    run_dir = None
    steps = staticmethod(iter)
    phase = contextlib.nullcontext
    step = attach = minibatch = close = lambda *_: None

    def __enter__(self):
        return self


class Floats:
    def __init__(self):
        random.seed(7)
        self.weights = [random.gauss(0, 1) for _ in range(4)]

    def update(self):
        self.weights = [0.9 * weight + random.gauss(0, 0.1) for weight in self.weights]

    def state(self):
        return struct.pack("4d", *self.weights) + repr(random.getstate()).encode()


class Torch:
    """A network with dropout and Adam; parameters, optimizer and random state are compared."""

    def __init__(self):
        import torch

        torch.manual_seed(7)
        layers = torch.nn.Linear(8, 16), torch.nn.Dropout(0.2), torch.nn.Linear(16, 1)
        self.torch = torch
        self.network = torch.nn.Sequential(*layers)
        self.optimizer = torch.optim.Adam(self.network.parameters(), lr=0.01)

    def update(self):
        loss = self.network(self.torch.randn(4, 8)).square().mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()

    def state(self):
        file = io.BytesIO()
        for tensor in self.network.state_dict().values():
            file.write(tensor.numpy().tobytes())
        for moments in self.optimizer.state_dict()["state"].values():
            file.write(b"".join(tensor.numpy().tobytes() for tensor in moments.values()))
        return file.getvalue() + self.torch.get_rng_state().numpy().tobytes()


def train(prof, *, rollout=None, within=id, between=id, steps=(1, 2, 3, 4, 5), who="", model=None):
    """Train with *within* called in each phase and *between* after it; print each step's state."""
    model = model or {"floats": Floats, "torch": Torch}[os.environ["FAULTS_MODEL"]]()
    for step in prof.steps(steps):
        if rollout is not None:
            with prof.phase("rollout"):
                rollout(step)
        with prof.phase("update"):
            model.update()
            prof.minibatch()
            with prof.phase("inner"):
                within(step)
        print(f"state {who}{step} {hashlib.sha256(model.state()).hexdigest()[:16]}", flush=True)
        between(step)
    return model


def settle(prof, captures):
    """Wait until *captures* captures are exported and their lines are written."""
    if prof.run_dir is None:
        return
    import rlprof

    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        run = rlprof.read(prof.run_dir)
        ended = [c for c in run.captures if c.export_s is not None or c.state == "failed"]
        if len(ended) >= captures:
            return
        time.sleep(0.05)
    raise TimeoutError(f"{captures} captures were not exported within 60 s")


def rest(prof):
    """Wait until the helper thread has ended a turn; for most of a second it opens no file."""
    if prof.run_dir is None:
        return
    deadline = time.monotonic() + 60
    moved = prof.scribe._moved
    while prof.scribe._moved == moved:
        assert time.monotonic() < deadline, "the helper thread ended no turn within 60 s"
        time.sleep(0.001)
