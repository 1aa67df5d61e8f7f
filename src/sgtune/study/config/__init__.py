"""The configuration of a run: its sections, its checks, its description."""
