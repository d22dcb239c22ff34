"""How long the command line takes to answer, and a process to import hexqdq, load a context and run it once.

    python benchmarks/start_time.py model.ctx [--runs 7] [--json]

Every figure is the median over fresh processes; the interpreter's own start is subtracted.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from pathlib import Path

from hexqdq.report import Table, print_tables, to_json_text

LOAD = "import hexqdq, sys; hexqdq.InferenceSession(sys.argv[1])"


def seconds(arguments: list[str], runs: int) -> float:
    """The median wall time of a process of this interpreter."""
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("context", type=Path)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    bare = seconds(["-c", ""], arguments.runs)
    commands = {
        "hexqdq --help": ["-m", "hexqdq", "--help"],
        "import hexqdq and numpy": ["-c", "import hexqdq, numpy"],
        "import, load a context": ["-c", LOAD, str(arguments.context)],
    }
    figures = {name: round(1000 * (seconds(command, arguments.runs) - bare), 1) for name, command in commands.items()}
    if arguments.json:
        print(to_json_text(figures))
    else:
        print_tables([Table("Milliseconds beyond the interpreter's start", ("what", "ms"), tuple(figures.items()))])
    return 0


if __name__ == "__main__":
    sys.exit(main())
