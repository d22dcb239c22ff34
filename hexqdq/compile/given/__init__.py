"""TOSA text that somebody gives to compile, whoever wrote it."""
