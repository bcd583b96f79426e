"""Which rows are left out: by their content, by their position, or as a splitter says."""

__all__: list[str] = []
