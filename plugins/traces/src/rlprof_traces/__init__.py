"""Read and write chrome traces, damaged ones too, in bounded memory."""

from __future__ import annotations
