"""The program's side of the plain subprocess: calls go out as lines of JSON, and answers come in as such."""

from __future__ import annotations

import json
import sys
from typing import Any


def call_all(name: str, arguments: list[list[Any]]) -> list[Any]:
    for number, one in enumerate(arguments):
        sys.stdout.write(json.dumps([number, name, one]) + "\n")
    sys.stdout.flush()
    answers = dict(json.loads(sys.stdin.readline()) for _ in arguments)
    return [answers[number] for number in range(len(arguments))]


def call(name: str, *arguments: Any) -> Any:
    return call_all(name, [list(arguments)])[0]


scope: dict[str, Any] = {"call": call, "call_all": call_all}
exec(compile(json.loads(sys.stdin.readline()), "<program>", "exec", dont_inherit=True), scope)
sys.stdout.write(json.dumps({"result": scope["result"]}) + "\n")
