"""What the runtime adds to the tree of errors in `registry/errors.py`."""

from __future__ import annotations

from collections.abc import Sequence

from ..registry import HarnessError
from ..sandbox.loglines import LogLines, joined_lines

__all__ = ["CodeRunFailedError", "ProgramRefusedError", "UnknownLanguageError"]

_HINTS = {
    "output-limit": "print and return less; count, filter or cut it down in the program.",
    "timeout": "do less in one run, with calls side by side in asyncio.gather; what its calls have done stays done.",
    "worker-exit": "where the program holds much in memory, hold less at once; what its calls have done stays done.",
}
"""What whoever wrote the program can do about a failure that is no exception of it, by its kind."""


class CodeRunFailedError(HarnessError):
    """A program did not complete (contract E34).

    Args:
        kind: the failure kind, for example `exception` or `timeout` (contract F3).
        message: what happened, for whoever wrote the program.
        logs: what the program had written.
    """

    default_code = "CODE_RUN_FAILED"

    def __init__(self, kind: str, message: str, logs: tuple[str, ...] | LogLines = ()) -> None:
        text = f"code run failed ({kind}): {message}"
        if kind in _HINTS:
            text += f"\nHint: {_HINTS[kind]}"
        if logs:
            text += "\nCaptured output:\n" + joined_lines(logs)
        super().__init__(text)
        self.kind = kind
        self.logs = logs


class ProgramRefusedError(HarnessError):
    """A program was not run, because it makes calls that cannot be right; nothing of it has had an effect.

    Args:
        findings: one line for each mistake, with the line of the program, the tool and the argument.
        left_out: how many more there are.
    """

    default_code = "PROGRAM_REFUSED"

    def __init__(self, findings: Sequence[str], left_out: int = 0) -> None:
        total = len(findings) + left_out
        mistakes = "1 mistake" if total == 1 else f"{total} mistakes"
        more = [f"and {left_out} more"] if left_out else []
        super().__init__(
            "\n".join(
                [
                    f"the program was not run, and none of its calls was made: {mistakes} in its use of the tools",
                    *findings,
                    *more,
                    "Mend this, and send the whole program again.",
                ]
            )
        )
        self.findings = tuple(findings)
        self.left_out = left_out


class UnknownLanguageError(HarnessError):
    """A sandbox runs programs in a language for which there is no SDK text (contract E5, E9).

    Args:
        language: the language that the sandbox names.
        known: the languages that there are.
    """

    default_code = "UNKNOWN_LANGUAGE"

    def __init__(self, language: object, known: Sequence[str]) -> None:
        super().__init__(
            f"the sandbox runs programs in {language!r}, and no SDK text can be written for that; "
            f"known languages: {', '.join(sorted(known))}"
        )
        self.language = language
