"""Sandboxes side by side: ours and others run the same programs, in one run, into one table.

    python -m tests.bench.peers [--markdown] [--quick] [--subjects NAME ...]

The other sandboxes come with `pip install 'ptc-runtime[bench]'`; those that are not installed are left out, and a line
says so. Every subject is asked for the same work in its own dialect, from one event loop (asyncio), and what it returns
is checked. Rows are measured one after another, and each goes round its subjects several times, so that a machine that
slows down meanwhile slows all of a row.

- Latency rows are whole runs, request to result: the median, and p10 to p90 behind it. There is a pause before each,
  so that what stands ready does. Every run gets fresh state.
- CPU rows are the time between two calls of the program around the work, less what such a pair takes without work
  between; so neither the start of a run nor the program's own clock counts.
- Memory is of the process and all that come from it, shared pages in part (PSS), for each run more that waits in a
  tool. Each subject has a process of its own for that, where nothing has been let go of before.
- To kill is to cancel the host's task of a run in a hot loop; it is done when the task has ended and nothing of the
  run has a processor any more.
"""
