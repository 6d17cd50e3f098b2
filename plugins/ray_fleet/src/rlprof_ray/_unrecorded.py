"""Members without a session: the driver writes their manifests, so that readers place their phases.

Nothing is sent to such an actor. Ray's record of its calls names its process and node, too.
"""

from __future__ import annotations

import os
import time
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Any

import attrs

from rlprof.rundir import Here, Journal, as_line, read_clock
from rlprof.types import safe_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from rlprof_ray._calls import Call
    from rlprof_ray._member import Member

_TOUCH_S = 20.0
"""Readers on other hosts take a process for dead if its manifest is older than a minute."""


class Unrecorded:
    """Writes `manifest/<role>-<rank>-<host>-<pid>-ray.jsonl` for each of them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._new: dict[str, tuple[bytes, ...]] = {}
        """Stem → the manifest of a process that has no phase yet."""
        self._files: list[Path] = []
        self._peers: dict[str, Member] = {}
        """Node → a member there whose clock was measured."""
        self._hosts: dict[str, str] = {}
        self._touched = time.monotonic()

    def name(self, members: Sequence[Member], calls: Iterable[Call]) -> None:
        """Name the files of each process without a session that ran some of *calls*."""
        measured = {worker: one for one in members if one.boot_id for worker in one.workers}
        without = {one.id: one for one in members if not one.has_entered}
        new: dict[str, Call] = {}
        for call in calls:
            if call.worker in measured:
                self._peers[call.node] = measured[call.worker]
            member = without.get(call.actor)
            if member is not None and call.worker not in member.workers:
                new[call.worker] = call
        for call in new.values():
            self._name(without[call.actor], call)

    def introduce(self, stem: str) -> None:
        """Write the manifest of a process that has its first phase."""
        if stem in self._new:
            file = self._folder / f"{stem}.jsonl"
            append(file, *self._new.pop(stem))
            self._files.append(file)

    def touch(self) -> None:
        """Show that they are still followed."""
        if time.monotonic() > self._touched + _TOUCH_S:
            self._touched = time.monotonic()
            for file in self._files:
                with suppress(OSError):
                    os.utime(file)

    def end(self) -> None:
        """Note that nothing more is written about them."""
        for file in self._files:
            append(file, as_event("ended"))

    def _name(self, member: Member, call: Call) -> None:
        here, target = self._here(member, call), member.target
        role, host = safe_name(target.role), safe_name(here.host)
        stem = f"{role}-{target.rank}-{host}-{here.pid}-ray"
        who = {"target": attrs.asdict(target), "here": attrs.asdict(here)}
        first = as_event("process", **who, versions={}, devices=[])
        self._new[stem] = first, as_event("clock", **attrs.asdict(read_clock()))
        member.workers[call.worker] = stem

    def _here(self, member: Member, call: Call) -> Here:
        """Return the process that ran it, with the clock of a member on its node."""
        import ray

        if call.node == ray.get_runtime_context().get_node_id():
            return Here.now(call.pid)
        if call.node not in self._hosts:
            self._hosts = {one["NodeID"]: one["NodeManagerHostname"] for one in ray.nodes()}
        peer = self._peers.get(call.node)
        member.offset_ns = 0 if peer is None else peer.offset_ns
        boot_id = f"ray-{call.node}" if peer is None else peer.boot_id
        return Here(self._hosts.get(call.node, call.node), boot_id, "", call.pid, "")


def as_event(event: str, **fields: Any) -> bytes:
    """Return an event of now as a line of a manifest."""
    return as_line({"event": event, "mono": time.monotonic_ns(), **fields})


def append(file: Path, *lines: bytes) -> None:
    """Append to a manifest; on a full disk, nothing is written."""
    with suppress(OSError), closing(Journal(file)) as journal:
        journal.write(lines)
