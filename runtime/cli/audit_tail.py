"""`ptc audit tail`: what it prints while a log is written.

`ptc audit tail --json` prints JSON Lines, one object for each start and each end of a call, in the order in which they
are recorded: `{"event": "start" or "end", "time", ...}` and then the keys of `ptc audit query --json`. What only the
end tells is null at the start, and `outcome` is `outcome unknown`.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Final

from rich.text import Text

from ...registry.lossless import to_json_text
from ..log.follow import CallFollower
from ..log.times import iso
from .audit_query import OUTCOME_STYLES, call_object, json_line, short_duration, why_text
from .terminal import console, cut, print_line, visible

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ..log.follow import CallNews
    from ..log.query import CallFilter

__all__ = ["tail"]

_EVERY_S: Final = 0.1
_NAME_BYTES: Final = 80
_TEXT_BYTES: Final = 160


def tail(
    log: Path,
    wanted: CallFilter,
    *,
    json: bool,
    say: Callable[[str], None],
    pause: Callable[[float], None] = time.sleep,
) -> None:
    """Prints the calls of a log as they start and end, until the user interrupts it, and then returns.

    Args:
        log: the log; it need not be there yet.
        wanted: which calls; with `since_us`, those that have happened since then come first. What only an end tells
            is asked of ends alone, so a start is not printed when it is asked for.
        json: prints JSON Lines.
        say: tells the user what is no output.
        pause: waits for so many seconds.

    Raises:
        LogUnavailableError: the file is no log, or cannot be read.
    """
    screen = console()
    try:
        with CallFollower(log, since_us=wanted.since_us) as follower:
            told = False
            while True:
                news_now = follower.poll()
                if follower.waiting and not told:
                    say(f"there is no log at {log} yet; waiting for it")
                    told = True
                for news in news_now:
                    if _fits(wanted, news):
                        if json:
                            sys.stdout.write(_json(news) + "\n")
                        else:
                            print_line(screen, _line(news))
                for problem in follower.unreadable:
                    say(problem)
                follower.unreadable.clear()
                sys.stdout.flush()
                pause(_EVERY_S)
    except KeyboardInterrupt:
        return


def _fits(wanted: CallFilter, news: CallNews) -> bool:
    found = news.found
    if wanted.session not in (None, found.session) or wanted.run not in (None, found.run):
        return False
    if news.happened == "start":
        asks_for_end = wanted.asks_for_the_end or wanted.outcome is not None
        return not asks_for_end and wanted.fits_start(found.call, found.agent)
    return wanted.fits(found.call, found.agent)


def _json(news: CallNews) -> str:
    return json_line({"event": news.happened, "time": iso(news.time_us), **call_object(news.found)})


def _line(news: CallNews) -> Text:
    found, call = news.found, news.found.call
    line = Text.assemble((f"{iso(news.time_us)[11:23]}  ", "dim"), visible(cut(found.agent, _NAME_BYTES)[0]))
    line.append_text(visible(f"  {found.session}/{'?' if found.run is None else found.run}  "))
    inside = "  " if call.parent_call_id is not None else ""
    line.append(inside)
    name = visible(cut(call.name, _NAME_BYTES)[0], "bold")
    number = call.call_id.rpartition(":ptc:")[2] if inside else ""
    if news.happened == "start":
        told = call.arguments if isinstance(call.arguments, str) else to_json_text(call.arguments)
        line.append_text(Text.assemble("> ", number, " " if number else "", name, "  "))
    else:
        told = why_text(call)
        line.append_text(Text.assemble("< ", number, " " if number else "", name, "  "))
        line.append(call.outcome, OUTCOME_STYLES[call.outcome])
        if call.duration_ms is not None:
            line.append(f"  {short_duration(call.duration_ms)}")
        line.append("  " if told else "")
    kept, note = cut(told, _TEXT_BYTES)
    return Text.assemble(line, visible(kept), "…" if note else "")
