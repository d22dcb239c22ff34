"""Repair passes: what wins back accuracy after ranges are known; one file each, with its equation and source."""
