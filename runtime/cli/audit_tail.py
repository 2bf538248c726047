"""`ptc audit tail`: what it prints while a log is written.

`ptc audit tail --json` prints JSON Lines, one object for each start and each end of a call, in the order in which they
are recorded: `{"event": "start" or "end", "time", ...}` and then the keys of `ptc audit query --json`. What only the
end tells is null at the start, and `outcome` is `outcome unknown`. Starts and ends of background jobs come between
them: `{"event": "job start" or "job end", "time", "session", "agent", "run": "SESSION/NUMBER", ...}` and then the keys
of a job in `ptc audit show --json`.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Final

from rich.text import Text

from ...registry.lossless import to_json_text
from ..log.follow import CallFollower, CallNews
from ..log.times import iso
from .audit_query import call_object, json_line, why_text
from .audit_words import OUTCOME_STYLES, job_object, job_text, short_duration
from .terminal import console, cut, print_line, visible

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ..log.call_filter import CallFilter
    from ..log.follow import JobNews

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
            is asked of ends alone, so a start is not printed when it is asked for. Jobs are printed when nothing is
            asked of calls but whose they are.
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


def _fits(wanted: CallFilter, news: CallNews | JobNews) -> bool:
    if isinstance(news, CallNews):
        found = news.found
        if wanted.session not in (None, found.session) or wanted.run not in (None, found.run):
            return False
        if news.happened == "start":
            return not wanted.asks_beyond_the_start and wanted.fits_start(found.call, found.agent)
        return wanted.fits(found.call, found.agent)
    return wanted.session in (None, news.session) and wanted.fits_agent(news.agent) and not wanted.asks_of_calls


def _json(news: CallNews | JobNews) -> str:
    if isinstance(news, CallNews):
        return json_line({"event": news.happened, "time": iso(news.time_us), **call_object(news.found)})
    told = {"event": f"job {news.happened}", "time": iso(news.time_us), "session": news.session, "agent": news.agent}
    run = None if news.run is None else f"{news.session}/{news.run}"
    return json_line({**told, "run": run, **job_object(news.job)})


def _line(news: CallNews | JobNews) -> Text:
    if isinstance(news, CallNews):
        return _call_line(news)
    line = _head(news.time_us, news.agent, news.session, news.run)
    line.append("  > " if news.happened == "start" else "  < ")
    return Text.assemble(line, *job_text(news.job, started=news.happened == "start"))


def _head(time_us: int, agent: str, session: str, run: int | None) -> Text:
    line = Text.assemble((f"{iso(time_us)[11:23]}  ", "dim"), visible(cut(agent, _NAME_BYTES)[0]))
    line.append_text(visible(f"  {session}/{'?' if run is None else run}  "))
    return line


def _call_line(news: CallNews) -> Text:
    found, call = news.found, news.found.call
    line = _head(news.time_us, found.agent, found.session, found.run)
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
