"""Stands for a plugin whose own needs are not installed."""

from __future__ import annotations

import no_such_module  # type: ignore[import-not-found]  # noqa: F401
