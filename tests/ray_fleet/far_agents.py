"""Agents that die, spoil what they send, or lie; they run in processes of Ray."""

from __future__ import annotations

import os
from pathlib import Path

from rlprof_ray._agent import Agent, Inventory, Item

TRACE = "step_000002/update/actor_0_of_1/stacks/a.bin"


class Dying(Agent):
    """Notes what it is asked for, and ends at the third read, once."""

    def read(self, folder, path, offset):
        near = Path(folder).parent
        died, asked = near / "died", near / "asked"
        if path == TRACE:
            with asked.open("a+") as file:  # reads run in threads: any of them may be the first
                file.seek(0)
                if offset and not died.exists() and len(file.readlines()) > 1:
                    died.touch()
                    os._exit(1)
                file.write(f"{offset}\n")
        return super().read(folder, path, offset)


class Corrupt(Agent):
    """Turns a bit of an artifact."""

    def read(self, folder, path, offset):
        pieces = super().read(folder, path, offset)
        if path == TRACE:
            pieces[0] = bytes([pieces[0][0] ^ 1]) + pieces[0][1:]
        return pieces


class Lying(Agent):
    """Lists what is not there, under names that lead elsewhere."""

    def inventory(self, folder):
        names = [
            "../evil", "/tmp/evil", "step_000001/../../evil", "run.json", ".collect/evil", "",
            "evil", "requests/evil.json", "manifest/../evil.jsonl", "step_000001/evil\0",
        ]  # fmt: skip
        return Inventory(tuple(Item(name, 4, 1) for name in names))

    def digest(self, folder, path, size):
        return "0" * 64

    def read(self, folder, path, offset):
        return [b"evil"] * 20

    def remove(self, folder, item):
        pass
