"""Calibration data in every form that ``--calib`` takes, read as feeds one at a time."""
