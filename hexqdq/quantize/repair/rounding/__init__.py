"""Rounding of a contraction's weights as a problem of its own: what it minimises, and how it is collected."""
