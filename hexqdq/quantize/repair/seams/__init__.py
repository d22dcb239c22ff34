"""Channels that can be scaled down where a tensor is made and up where it is read, without a change of the outputs."""
