"""Fits as algorithms that one reads from top to bottom, and the records that they return."""

__all__: list[str] = []
