"""Plugins made for tests; a module of their own, so that helper processes can import them."""
