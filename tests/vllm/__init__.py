"""The adapter for vLLM without vLLM: signatures of real releases, and engines made from them."""

from __future__ import annotations
