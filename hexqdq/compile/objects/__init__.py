"""Kernel text to linked shared objects: MLIR, LLVM and the linker."""
