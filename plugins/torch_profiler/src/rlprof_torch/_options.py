"""The options of the tools; options of verl have the same meaning here."""

from __future__ import annotations

import re
from importlib import metadata
from typing import Any

import attrs

from rlprof import Advice
from rlprof.errors import closest

CONTENTS = ("cpu", "cuda", "xpu", "memory", "shapes", "stack", "flops", "modules")


def parse_contents(value: Any) -> tuple[str, ...]:
    """Read `contents`: names in `CONTENTS`; raise ValueError with a name that is not."""
    items = value if isinstance(value, (list, tuple)) else [value]
    for item in items:
        if item not in CONTENTS:
            hint = closest("cuda" if item == "gpu" else item, CONTENTS)
            raise ValueError(f"expected some of {', '.join(CONTENTS)}, got {item!r}{hint}")
    return tuple(dict.fromkeys(items))


def _at_least(least: int) -> Any:
    def validate(_: Any, __: Any, value: int) -> None:
        if value < least:
            raise ValueError(f"expected at least {least}, got {value}")

    return validate


@attrs.frozen
class MiniBatches:
    """The mini-batches of a window to record; each stretch of `active` is a separate trace."""

    active: int = attrs.field(validator=_at_least(1))
    """Recorded in a row."""
    skip_first: int = attrs.field(default=0, validator=_at_least(0))
    """Passed over once, at the beginning."""
    wait: int = attrs.field(default=0, validator=_at_least(0))
    """Passed over before each stretch."""
    warmup: int = attrs.field(default=0, validator=_at_least(0))
    """Recorded and thrown away before each stretch."""
    repeat: int = attrs.field(default=1, validator=_at_least(0))
    """Stretches; 0: as many as the window holds."""


@attrs.frozen
class TorchOptions:
    """Options of `torch`."""

    contents: tuple[str, ...] = attrs.field(default=(), metadata={"parse": parse_contents})
    """What to record; empty: the CPU and the device there is. `cpu` is always on, for without it
    phases could not be found."""
    all_threads: bool | None = None
    """Record every thread of the process, not only the one that opens the window; needs torch 2.8,
    and cannot be combined with `memory`. By default, where that is safe: torch 2.14 and later."""
    schedule: MiniBatches | None = None
    """Record only some mini-batches, as marked by `prof.minibatch()`."""


@attrs.frozen
class MemoryOptions:
    """Options of `torch_memory`."""

    max_entries: int = attrs.field(default=100_000, validator=_at_least(1))
    """Allocations and frees kept; the oldest go first."""
    stacks: bool = True
    """Keep the Python stack of each."""
    on_oom: bool = False
    """Write a snapshot the moment an allocation fails inside a window, too."""


def is_unsafe(release: str) -> bool:
    """Whether torch *release* may crash or hang where it records all threads.

    Before 2.14 it frees a recording while operators of other threads still write into it: the
    process dies, or such a thread waits forever (pytorch/pytorch#187483 and #188172).
    """
    return tuple(map(int, re.findall(r"[0-9]+", release)[:2])) < (2, 14)


def advise_torch(options: TorchOptions) -> list[Advice]:
    """Warn of `all_threads: true` with a torch that may crash."""
    try:
        release = metadata.version("torch")
    except metadata.PackageNotFoundError:
        return []
    if not (options.all_threads and is_unsafe(release)):
        return []
    words = (
        f"torch {release} may crash or hang training where another thread runs operators as a "
        "window ends; leave it out, or use torch 2.14"
    )
    return [Advice(words, "all_threads", "warning")]


_HEAVIEST = ("stack", "modules", "flops", "shapes", "memory")
"""Contents that can be done without, the most expensive first."""


def lighter_torch(options: TorchOptions) -> TorchOptions | None:
    """Leave out the most expensive of the contents that can be done without."""
    for name in _HEAVIEST:
        if name in options.contents:
            left = tuple(other for other in options.contents if other != name)
            return attrs.evolve(options, contents=left or ("cpu",))  # empty would be more, not less
    return None


def lighter_memory(options: MemoryOptions) -> MemoryOptions | None:
    """Leave out the stacks, then keep a tenth of the history at a time."""
    if options.stacks:
        return attrs.evolve(options, stacks=False)
    if options.max_entries >= 10_000:
        return attrs.evolve(options, max_entries=options.max_entries // 10)
    return None
