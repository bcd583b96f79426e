"""What is minimised: losses of rows left out, and criteria without folds."""

__all__: list[str] = []
