"""Choosing C and γ: cross-validated paths along C, their scores, and the machine refitted."""
