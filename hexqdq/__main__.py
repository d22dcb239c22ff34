"""``python -m hexqdq``."""

from __future__ import annotations

from hexqdq.cli import main

if __name__ == "__main__":
    main()
