"""Runs programs in the restricted language, each in a process of its own; for tests alone.

Started as `python -I restricted_child.py <root of the package>`. Reads one JSON object a line: `id`, `program`, `data`
(what the tools answer from), optional `modules`, `wait_s` and `native` (run without the language, to compare). Writes
one JSON object a line: `id`, `completion` (null when the process died), `output`, `calls`, `died` and `cpu_s`.
"""

import contextlib
import copy
import json
import os
import resource
import select
import signal
import sys
import time
import types
from pathlib import Path

MEMORY_BYTES = 1 << 30
MOST_OUTPUT_BYTES = 12 << 20
SLEEP = time.sleep  # the guest puts its own in its place


def load(root):
    for name, path in (("ptc_sandbox", root / "sandbox"), ("ptc_sandbox.restricted", root / "sandbox" / "restricted")):
        package = types.ModuleType(name)
        package.__path__ = [str(path)]
        sys.modules[name] = package
    from ptc_sandbox.guest.dialect import FULL_PYTHON
    from ptc_sandbox.guest.run import run
    from ptc_sandbox.restricted.inside.language import RestrictedDialect

    return run, RestrictedDialect, FULL_PYTHON


MEMBERS = {
    "echo": ["value"],
    "add": ["a", "b"],
    "slow": ["ms"],
    "boom": ["message"],
    "secret": [],
    "list_orders": [],
    "get_customer": ["id"],
    "search": ["query", "limit"],
}


class Tools:
    """The tools of the collections of programs, answered in this process."""

    def __init__(self, data):
        self.data = data

    def answer(self, name, given):
        """Returns what the tool gives, and after how many seconds; raises ValueError with the message of a failure."""
        if name not in MEMBERS or name == "secret":
            raise ValueError(f"{name} is denied")
        if set(given) != set(MEMBERS[name]):
            raise ValueError(f"arguments of {name} do not fit")
        return getattr(self, name)(**given)

    def echo(self, value):
        return value, 0.0

    def add(self, a, b):
        if type(a) not in (int, float) or type(b) not in (int, float):
            raise ValueError("add takes numbers")
        return a + b, 0.0

    def slow(self, ms):
        if type(ms) not in (int, float) or not 0 <= ms <= 1e6:
            raise ValueError("ms is out of range")
        return None, ms / 1000

    def boom(self, message):
        raise ValueError(message)

    def list_orders(self):
        return self.data["orders"], 0.0

    def get_customer(self, id):
        customers = self.data["customers"]
        found = customers.get(id) if isinstance(customers, dict) else [one for one in customers if one["id"] == id]
        if not found:
            raise ValueError(f"no customer {id}")
        return (found if isinstance(customers, dict) else found[0]), 0.0

    def search(self, query, limit):
        found = [one for one in self.data["documents"] if query.lower() in one["title"].lower()]
        found.sort(key=lambda one: -one["score"])
        return {"query": query, "total": len(found), "results": found[:limit]}, 0.0


class Channel:
    """Answers calls when they are due, and keeps what was written and called."""

    def __init__(self, tools, out):
        self.tools = tools
        self.out = out
        self.pending = []

    def submit(self, calls):
        for call_id, _namespace, member, given, _line in json.loads(calls):
            self.out("call", [member, given])
            try:
                value, delay = self.tools.answer(member, given)
                reply = [call_id, True, value]
            except Exception as error:
                reply, delay = [call_id, False, str(error)], 0.0
            self.pending.append((time.monotonic() + delay, len(self.pending), reply))

    def wait(self, timeout_us):
        until = None if timeout_us < 0 else time.monotonic() + timeout_us / 1e6
        while True:
            now = time.monotonic()
            due = sorted(one for one in self.pending if one[0] <= now)
            if due:
                self.pending = [one for one in self.pending if one[0] > now]
                return json.dumps([reply for _when, _order, reply in due])
            ends = [one[0] for one in self.pending] + ([until] if until is not None else [])
            if until is not None and now >= until:
                return "[]"
            SLEEP(max(0.0, min(ends) - now) if ends else 3600)

    def emit(self, text):
        self.out("text", text)


def in_fork(job, write, run, dialect):
    def out(kind, value):
        os.write(write, (json.dumps([kind, value]) + "\n").encode())

    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    os.environ.clear()
    seconds = int(job.get("wait_s", 10)) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    if job.get("native"):
        copy._reconstruct = copy._reconstruct.original  # which the dialect has changed
    request = {
        "program": job["program"],
        "seed": int.from_bytes(os.urandom(8)),
        "limits": {"queuedBytes": 16 << 20, "outputBytes": 64 << 20},
        "namespaces": [
            {
                "global": "tools",
                "members": MEMBERS,
                "errorClass": {"name": "ToolCallError", "property": "toolName"},
            }
        ],
    }
    began = time.process_time()
    completion = run(Channel(Tools(job.get("data")), out), json.dumps(request), dialect)
    out("cpu", time.process_time() - began)
    out("completion", completion)


def serve_one(job, run, dialect):
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.setsid()
        os.close(read)
        try:
            in_fork(job, write, run, dialect)
        finally:
            os._exit(0)
    os.close(write)
    until = time.monotonic() + job.get("wait_s", 10)
    received = b""
    while (left := until - time.monotonic()) > 0 and len(received) < MOST_OUTPUT_BYTES:
        if not select.select([read], [], [], left)[0]:
            break
        part = os.read(read, 1 << 16)
        if not part:
            break
        received += part
    late = time.monotonic() >= until
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    os.close(read)
    _, status = os.waitpid(pid, 0)
    answer = {"id": job["id"], "completion": None, "output": "", "calls": [], "died": None, "cpu_s": None}
    output = []
    for line in received.split(b"\n"):
        try:
            kind, value = json.loads(line)
        except ValueError:
            continue
        if kind == "call":
            answer["calls"].append(value)
        elif kind == "text":
            output.append(value)
        elif kind == "cpu":
            answer["cpu_s"] = value
        else:
            answer["completion"] = value
    answer["output"] = "".join(output)
    if answer["completion"] is None:
        answer["died"] = "time" if late else f"status {status}"
    return answer


def main():
    run, make_dialect, native = load(Path(sys.argv[1]))
    dialects = {(): make_dialect(())}
    for line in sys.stdin:
        job = json.loads(line)
        modules = tuple(job.get("modules", ()))
        if modules not in dialects:
            dialects[modules] = make_dialect(modules)
        answer = serve_one(job, run, native if job.get("native") else dialects[modules])
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
