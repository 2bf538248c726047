"""What a model gave as arguments: as the tool gets it, and as the record keeps it (contract D1, I3)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NoReturn

from .lossless import snapshot, to_json_text

__all__ = ["argument_text", "parse_arguments"]


def parse_arguments(arguments: str | Mapping[str, object]) -> object:
    """Returns what a model's argument text means; text that is not JSON stays text (contract D1, B63).

    A mapping is given on as a dict. What cannot be one is given on as it is: the call says what is wrong with it.
    """
    if not isinstance(arguments, str):
        if isinstance(arguments, dict) or not isinstance(arguments, Mapping):
            return arguments
        try:
            return dict(arguments)
        except Exception:  # noqa: BLE001 - the mapping's own code failed; that is the call's failure, not the batch's
            return arguments
    if not arguments:
        return {}
    try:
        return json.loads(arguments, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return arguments


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def argument_text(arguments: str | Mapping[str, object]) -> str:
    """Returns the argument text for the record: the model's own, or the mapping as JSON (contract I3)."""
    if isinstance(arguments, str):
        text = arguments
    else:
        try:
            text = to_json_text(snapshot(dict(arguments)))
        except Exception:  # noqa: BLE001 - no JSON, or its own code failed: the record says what can be said
            text = _shown(arguments)
    return text.encode("utf-8", "backslashreplace").decode()


def _shown(arguments: object) -> str:
    try:
        return repr(arguments)
    except Exception:  # noqa: BLE001 - what cannot be printed must not end the batch
        return f"<unprintable {type(arguments).__name__}>"
