"""A server of the handshake era, written out by hand: standard library only, one message a line.

It is as well-behaved or as hostile as its first argument says. Further arguments are the mode's own.
"""

import json
import os
import sys
import threading
import time
from pathlib import Path

MODE, *MORE = sys.argv[1:] or ["plain"]
LOCK = threading.Lock()
OBJECT = {"type": "object"}
CANCELLED = []
SESSION = {"version": "2025-11-25"}


def say(message):
    raw = message if isinstance(message, bytes) else json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"
    with LOCK:
        sys.stdout.buffer.write(raw)
        sys.stdout.buffer.flush()


def answer(request, result):
    say({"id": request["id"], "result": result})


def refuse(request, code, message):
    say({"id": request["id"], "error": {"code": code, "message": message}})


def text(words):
    return {"type": "text", "text": words}


def tool(name, schema=None, **more):
    return {"name": name, "inputSchema": schema or OBJECT, **more}


def result(*blocks, **more):
    return {"content": list(blocks), **more}


TOOLS = [
    tool("echo", {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}, title="Echo"),
    tool("sleep", {"type": "object", "properties": {"seconds": {"type": "number"}}}),
    tool("cancelled"),
    tool("reads", annotations={"readOnlyHint": True, "openWorldHint": False, "title": "Reader"}),
    tool("die", annotations={"readOnlyHint": False, "destructiveHint": True}),
    tool("die_reading", annotations={"readOnlyHint": True}),
    tool("pid"),
]

LISTS = {
    "duplicates": [tool("twice"), tool("twice"), tool("differs", description="a"), tool("echo"),
                   tool("differs", description="b")],
    "bad-schemas": [
        tool("remote", {"type": "object", "properties": {"a": {"$ref": "https://schemas.invalid/a.json"}}}),
        tool("nonsense", {"type": "object", "properties": {"a": {"type": "nonsense"}}}),
        {"name": "no-schema", "inputSchema": "text"},
        {"inputSchema": OBJECT},
        "not even an object",
        tool("bad-output", outputSchema={"type": "object", "properties": {"a": {"$ref": "#/nowhere"}}}),
        tool("run_code"),
        tool(""),
        tool("a\u202eb"),
        tool("x" * 200),
        tool("task", execution={"taskSupport": "required"}),
        tool("echo"),
    ],
    "draft-07": [
        tool("pair", {
            "$schema": "http://json-schema.org/draft-07/schema#", "type": "object",
            "properties": {"at": {"type": "array", "items": [{"type": "number"}, {"type": "string"}],
                                  "additionalItems": False}},
            "dependencies": {"a": ["b"]},
        }),
    ],
    "many": [tool(f"t{number}") for number in range(5_010)],
    "structured": [
        tool("good", outputSchema={"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}),
        tool("wrong", outputSchema={"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}),
        tool("missing", outputSchema={"type": "object"}),
        tool("free"),
        tool("nan"),
    ],
    "blocks": [tool(name) for name in ("texts", "none", "image", "bad-image", "mixed", "both", "error", "bare-error")],
    "shapes": [tool(name) for name in ("no-content", "text-result", "odd-block", "protocol-error", "deep")],
    "kept": [tool("echo"), tool("grow"), tool("same", description="as it was")],
}  # fmt: skip

IMAGE = {"type": "image", "data": "aGVsbG8=", "mimeType": "image/png"}
AUDIO = {"type": "audio", "data": "aGVsbG8=", "mimeType": "audio/wav"}
RESULTS = {
    "texts": result(text("one"), text("two")),
    "none": result(),
    "image": result(IMAGE),
    "bad-image": result({"type": "image", "data": "!!", "mimeType": "image/png"}),
    "mixed": result(
        text("look"),
        IMAGE,
        AUDIO,
        {"type": "resource", "resource": {"uri": "demo://a", "text": "inside", "mimeType": "text/plain"}},
        {"type": "resource", "resource": {"uri": "demo://b", "blob": "aGVsbG8="}},
        {"type": "resource_link", "uri": "demo://c", "name": "third", "description": "a link"},
    ),
    "both": result(text("seen"), IMAGE, structuredContent={"n": 1}),
    "error": result(text("the disk"), text("is full"), isError=True),
    "bare-error": result(isError=True),
    "good": result(text('{"n": 7}'), structuredContent={"n": 7}),
    "wrong": result(structuredContent={"n": "seven"}),
    "missing": result(text("no structure")),
    "free": result(structuredContent={"any": [1, None, "x"]}),
    "no-content": {"isError": False},
    "odd-block": result({"type": "hologram", "data": "x"}),
}


def listed():
    return LISTS.get(MODE, TOOLS)


def call(request):  # noqa: C901 - one arm a tool
    name = request["params"]["name"]
    arguments = request["params"].get("arguments") or {}
    if name in RESULTS:
        answer(request, RESULTS[name])
    elif name == "echo":
        answer(request, result(text(arguments.get("text", ""))))
    elif name == "sleep":
        answer_later(request, arguments.get("seconds", 1))
    elif name == "cancelled":
        answer(request, result(text(json.dumps(CANCELLED))))
    elif name in ("die", "die_reading"):
        sys.stderr.write("dying now\n")
        sys.stderr.flush()
        os._exit(7)
    elif name == "pid":
        answer(request, result(text(str(os.getpid()))))
    elif name == "grow":
        LISTS["kept"] = [*LISTS["kept"][:1], tool("grown"), tool("same", description="as it was"),
                         tool("grow", description="changed")]  # fmt: skip
        answer(request, result(text("grown")))
        say({"method": "notifications/tools/list_changed"})
    elif name == "text-result":
        say(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": "text"}).encode() + b"\n")
    elif name == "nan":
        say(b'{"jsonrpc":"2.0","id":%d,"result":{"content":[],"structuredContent":{"n":NaN}}}\n' % request["id"])
    elif name == "deep":
        deep = b"[" * 2_000 + b"]" * 2_000
        say(b'{"jsonrpc":"2.0","id":%d,"result":{"content":[],"structuredContent":{"n":%s}}}\n' % (request["id"], deep))
    elif name == "protocol-error":
        refuse(request, -32000, "the server is tired")
    elif name == "ask":
        say({"id": "q1", "method": "elicitation/create", "params": {
            "mode": "form", "message": "Which colour?", "requestedSchema": {
                "type": "object", "properties": {"colour": {"type": "string"}}, "required": ["colour"]}}})  # fmt: skip
        WAITING["q1"] = request
    elif name == "progress":
        token = request["params"].get("_meta", {}).get("progressToken")
        for step in (1, 2, 2, 1, 3):
            if token is not None:
                told = {"progressToken": token, "progress": step, "total": 3, "message": f"step {step}"}
                say({"method": "notifications/progress", "params": told})
        answer(request, result(text("with progress" if token is not None else "without progress")))
    else:
        refuse(request, -32602, f"unknown tool {name}")


WAITING = {}


def answer_later(request, seconds):
    def later():
        time.sleep(seconds)
        answer(request, result(text("slept")))

    threading.Thread(target=later, daemon=True).start()


def handle(message):
    method = message.get("method")
    if method is None:
        request = WAITING.pop(message.get("id"), None)
        if request is not None:
            answer(request, result(text(json.dumps(message.get("result") or message.get("error")))))
    elif method == "initialize":
        answer(message, {"protocolVersion": SESSION["version"], "serverInfo": {"name": MODE, "version": "1"},
                         "capabilities": {"tools": {"listChanged": True}}, "instructions": "Be kind."})  # fmt: skip
    elif method == "notifications/cancelled":
        CANCELLED.append(message["params"]["requestId"])
    elif method == "tools/list":
        list_tools(message)
    elif method == "tools/call":
        call(message)
    elif "id" in message:
        refuse(message, -32601, "method not found")


def list_tools(request):
    if MODE == "same-page":
        answer(request, {"tools": [tool("echo")], "nextCursor": "again"})
    elif MODE == "endless-pages":
        place = int(request.get("params", {}).get("cursor", "0"))
        answer(request, {"tools": [], "nextCursor": str(place + 1)})
    elif MODE == "pages":
        place = int(request.get("params", {}).get("cursor", "0"))
        answer(request, {"tools": [tool(f"page{place}")], **({"nextCursor": str(place + 1)} if place < 2 else {})})
    elif MODE == "bad-list":
        answer(request, {"tools": "none"})
    else:
        answer(request, {"tools": listed()})


def prepare():  # noqa: C901 - one arm a mode
    """What a mode does before anything is asked."""
    if MODE == "hang":
        time.sleep(600)
    elif MODE == "exit":
        sys.stderr.write("Traceback: no such module\n")
        sys.exit(3)
    elif MODE == "junk":
        say(b"Server is starting...\n\n{not json}\n[1, 2]\n\xff\xfe\n")
    elif MODE == "junk-flood":
        while True:
            say(b"junk " * 200 + b"\n")
    elif MODE == "long-line":
        while True:
            say(b"x" * 1_000_000)
    elif MODE == "ask-flood":
        number = 0
        while True:
            number += 1
            say({"id": f"p{number}", "method": "ping"})
    elif MODE == "old":
        SESSION["version"] = "2024-11-05"
        LISTS["old"] = [tool("echo", outputSchema=OBJECT)]
    elif MODE == "strict":  # it ends when it is spoken to before the handshake
        LISTS["strict"] = TOOLS
    elif MODE == "once":  # the first process ends when it is told; the others do not start until a file is there
        flag = Path(MORE[0])
        if flag.exists() and flag.read_text() == "down":
            sys.exit(1)
    elif MODE in ("ask", "progress"):
        LISTS[MODE] = [tool(MODE)]
    elif MODE == "list-flood":
        LISTS[MODE] = TOOLS

        def flood():
            while True:
                say({"method": "notifications/tools/list_changed"})

        threading.Thread(target=flood, daemon=True).start()
    elif MODE == "orphan" and os.fork() == 0:  # a child keeps the pipes open when the server is gone
        time.sleep(600)
        os._exit(0)


prepare()
for line in sys.stdin.buffer:
    heard = json.loads(line)
    if MODE == "strict" and heard.get("method") == "server/discover":
        sys.exit(1)
    if MODE == "deaf" and heard.get("method") == "server/discover":
        continue
    handle(heard)
