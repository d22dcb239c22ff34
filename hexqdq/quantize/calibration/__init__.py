"""From samples to ranges, and the file that keeps ranges."""
