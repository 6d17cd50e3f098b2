"""A tool whose module imports something heavy."""

import colorsys  # noqa: F401 -- stands for torch

from tests.kit.tools import Good


class ImportsHeavily(Good):
    """Import a stand-in for torch with the module."""
