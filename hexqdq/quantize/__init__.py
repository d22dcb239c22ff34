"""Calibrates a float model and writes it as a QDQ graph."""
