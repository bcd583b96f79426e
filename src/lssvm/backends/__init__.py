"""Where rows are and who computes: arrays, devices, files read in blocks, clusters."""

__all__: list[str] = []
