"""TOSA text to loop nests: upstream's lowering to linalg, read into small typed records."""
