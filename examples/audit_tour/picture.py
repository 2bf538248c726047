"""Prints what `ptc audit show` shows of the tour at 100 columns; `picture.txt` is what it printed once.

python examples/audit_tour/picture.py > examples/audit_tour/picture.txt
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path


def picture() -> str:
    tour = Path(__file__).with_name("tour.py")
    with tempfile.TemporaryDirectory() as folder:
        log = str(Path(folder) / "tour.db")
        subprocess.run([sys.executable, str(tour), log], check=True, stdout=subprocess.DEVNULL)  # noqa: S603 - ours
        show = [sys.executable, "-m", "ptc.runtime.cli", "audit", "show", "--log", log]
        environment = {**os.environ, "COLUMNS": "100", "NO_COLOR": "1", "PYTHONUTF8": "1"}
        shown = subprocess.run(show, check=True, stdout=subprocess.PIPE, encoding="utf-8", env=environment)  # noqa: S603
        return shown.stdout


if __name__ == "__main__":
    sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]
    sys.stdout.write(picture())
