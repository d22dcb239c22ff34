"""Kernels: MLIR text of static loops over pointers, one function per distinct body."""
