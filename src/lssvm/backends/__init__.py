"""Where rows are stored and sums computed: arrays, devices, files in blocks, clusters."""

__all__: list[str] = []
