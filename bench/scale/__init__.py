"""Data beyond memory and workers beyond one process: `python -m bench.scale`."""
