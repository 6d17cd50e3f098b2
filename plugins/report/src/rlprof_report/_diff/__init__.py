"""Compares two runs, or parts of one: honest about noise, lengths and autocorrelation."""
