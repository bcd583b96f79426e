"""How C and gamma are searched: paths, grids, annealing; the record of what was evaluated."""

__all__: list[str] = []
