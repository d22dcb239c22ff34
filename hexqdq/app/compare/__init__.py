"""Which tensor broke it: what ``hexqdq compare`` prints and writes as a page."""
