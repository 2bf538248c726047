"""Runs programs as Python itself does, all in one process: a script that reads a JSON list and writes one.

Of each program it tells what it left in `result` as JSON text, what it printed, and how it failed: the exception as a
traceback tells it, and the program's own frames.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import sys
import traceback
import types
import warnings
from typing import Any

FRAME = re.compile(r'^ *(?:\| *)*File "<program>", line ([0-9]+), in (.+)$', re.MULTILINE)


def run(program: str) -> dict[str, Any]:
    written = io.StringIO()
    # As a module that can be found by its name, because dataclasses and the like look for it there.
    module = sys.modules["__main__"] = types.ModuleType("__main__")
    value, failed, frames = None, None, []
    with contextlib.redirect_stdout(written), contextlib.redirect_stderr(written):
        try:
            exec(compile(program, "<program>", "exec", dont_inherit=True), vars(module))
            value = json.dumps(vars(module)["result"], ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        except BaseException as error:
            told = traceback.TracebackException.from_exception(error)
            failed = "".join(told.format_exception_only()).rstrip("\n")
            frames = FRAME.findall("".join(told.format()))
    return {"value": value, "logs": written.getvalue(), "failed": failed, "frames": frames}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    out = sys.stdout
    json.dump([run(program) for program in json.load(sys.stdin)], out)
