"""Decides which parts of a QDQ model the NPU runs and cuts the model there."""
