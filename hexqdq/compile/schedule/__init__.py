"""Kernels in order: shared functions, the memory plan, the step list and the entry function."""
