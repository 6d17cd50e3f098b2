"""Real engines with edited sources, as their next releases may have them."""
