"""Searches lines for a regular expression, in a process of its own that can be stopped.

`re` keeps the interpreter to itself while it matches, and a pattern such as `(a+)+$` may need longer than anyone will
wait; in the host it would stop everything. So `tools.py` runs this file as a script. It opens no files: one JSON object
comes in on stdin, and one goes out on stdout.

    in   {"pattern": str, "ignore_case": bool, "limit": int, "seconds": float, "line_chars": int,
          "files": [[path, text], ...]}
    out  {"matches": [[path, line_number, line], ...]}  or  {"error": str}
"""

from __future__ import annotations

import json
import re
import signal
import sys
from typing import Any, NoReturn


class OutOfTimeError(Exception):
    """The search has used its seconds; raised from the alarm, so also in the middle of one match."""


def out_of_time(_signal: int, _frame: object) -> NoReturn:
    raise OutOfTimeError


def search(request: dict[str, Any]) -> dict[str, Any]:
    """Answers one request; what is wrong with the pattern, or that it is too slow, is an answer too."""
    at = "before the first line"
    matches: list[tuple[str, int, str]] = []
    signal.signal(signal.SIGALRM, out_of_time)
    signal.setitimer(signal.ITIMER_REAL, request["seconds"])
    try:
        pattern = re.compile(request["pattern"], re.IGNORECASE if request["ignore_case"] else 0)
        for path, text in request["files"]:
            for number, line in enumerate(text.removesuffix("\n").split("\n"), start=1):
                at = f"at line {number} of {path!r}"
                line = line.rstrip("\r")[: request["line_chars"]]
                if pattern.search(line):
                    matches.append((path, number, line))
                    if len(matches) == request["limit"]:
                        return {"matches": matches}
    except OutOfTimeError:
        return {"error": f"the search ran out of time {at}; use a simpler pattern or fewer files"}
    except (re.error, OverflowError, RecursionError) as error:
        return {"error": f"not a regular expression that Python can use: {error}"}
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    return {"matches": matches}


if __name__ == "__main__":
    json.dump(search(json.load(sys.stdin)), sys.stdout)
