"""Where members of a fleet write that do not see the run folder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

if TYPE_CHECKING:
    from collections.abc import Mapping


@attrs.frozen
class Place:
    """A folder on one node, to which members of a fleet have written."""

    node: str
    host: str
    folder: str

    @classmethod
    def of_line(cls, line: Mapping[str, Any]) -> Place:
        """Read a line of a manifest."""
        return cls(str(line["node"]), str(line["host"]), str(line["folder"]))
