"""Figures of devices from the traces of windows, as frozen values that page and JSON print.

All seconds lie inside the window. `None` means that it is not known.
"""

from __future__ import annotations

import attrs


@attrs.frozen
class Temporal:
    """How the time of a device was used (figure 16)."""

    window_s: float
    """From the first device event to the last, inside the window."""
    compute_s: float
    communication_s: float
    idle_s: float
    """Nothing ran at all."""
    exposed_communication_s: float
    """Communication ran and no compute did."""
    exposed_copy_s: float
    """Copies or fills ran and nothing else did."""

    @property
    def overlap(self) -> float | None:
        """The share of communication during which compute ran; None: there was no communication."""
        hidden = self.communication_s - self.exposed_communication_s
        return hidden / self.communication_s if self.communication_s else None


@attrs.frozen
class Idle:
    """Why the device was idle before a kernel began (figure 17)."""

    launch_bound_s: float
    """The host had not launched it yet, or not more than 10 us before."""
    waiting_s: float
    """The host had launched it: it waited for another stream, an event or the queue."""
    short_s: float
    """Gaps below 10 us before kernels that had been launched."""
    unknown_s: float
    """The launch is not in the trace, or is one of a CUDA graph, which starts many kernels."""


@attrs.frozen
class TopName:
    """All calls of one kernel or host operator (figure 19)."""

    name: str
    total_s: float
    """Of a host operator its self time: without the operators that it called."""
    count: int
    median_s: float | None
    """Of a host operator and over several captures None."""
    share: float
    """Of the time of all kernels, or of the self time of all host operators."""
    kind: str
    """`compute`, `communication`, `copy` or `host`."""


@attrs.frozen
class MemoryPeak:
    """The most memory that torch's allocator held on one device (figure 20)."""

    device: str
    """`cpu`, `cuda:0`; of a role the largest of its captures."""
    allocated_bytes: int
    reserved_bytes: int


@attrs.frozen
class CaptureDevice:
    """The figures of one trace of one window."""

    file: str
    """Relative to the run folder."""
    window: str
    """`7/update_actor`."""
    target: str
    role: str
    rank: int
    device_events: int
    graph_kernels: int
    """Kernels of CUDA graphs, where one launch starts several."""
    temporal: Temporal | None
    """None: the trace has no device events."""
    idle: Idle | None
    kernels: tuple[TopName, ...]
    operators: tuple[TopName, ...]
    memory: tuple[MemoryPeak, ...]
    notes: tuple[str, ...] = ()
    """What could not be read or is left out, one sentence each."""
    host: str = ""
    window_s: float = 0.0
    """From the begin of the window to its end; 0: it has no end."""
    compile_s: float = 0.0
    """In which `torch.compile` compiled."""


@attrs.frozen
class RoleDevice:
    """The captures of one role together: seconds are sums, memory is the largest."""

    role: str
    captures: int
    """How many traces with device events it is made of."""
    temporal: Temporal | None
    idle: Idle | None
    kernels: tuple[TopName, ...]
    operators: tuple[TopName, ...]
    memory: tuple[MemoryPeak, ...]


@attrs.frozen
class LateRank:
    """How late one rank came to the collectives of a window (figure 18).

    All ranks leave a collective together, so the rank whose call is the shortest came last. No
    common clock is needed.
    """

    role: str
    window: str
    rank: int
    late_s: float
    """Sum over the collectives: the longest call of any rank less its own."""
    votes: int
    """Collectives to which it came last, by at least 10 us."""
    collectives: int
    """Its collectives that other ranks recorded, too."""


@attrs.frozen
class RequestTimes:
    """The requests of one replica, in its windows that recorded them (figure 15)."""

    target: str
    count: int
    finished: int
    queue_p50_s: float | None
    queue_p99_s: float | None
    first_token_p50_s: float | None
    first_token_p99_s: float | None
    preemptions: int | None
    """None: the engine does not say."""


@attrs.frozen
class Device:
    """All figures of devices of a run."""

    captures: tuple[CaptureDevice, ...]
    roles: tuple[RoleDevice, ...]
    late: tuple[LateRank, ...]
    """The latest first."""
    requests: tuple[RequestTimes, ...]
    notes: tuple[str, ...] = ()
    """Traces that could not be read at all, and why."""
