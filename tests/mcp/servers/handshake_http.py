"""A streamable HTTP server of the handshake era, by hand, that can be told to misbehave. Arguments: the port, a mode.

`requires` answers 401 without the right header, `huge` and `squeezed` answer calls too long or compressed, `cut` ends
in the middle of an answer, and `lazy` says by status 400 that it does not know a session. It ends when it is told.
"""

import gzip
import json
import os
import socket
import sys
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PORT, MODE = int(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "plain"
SESSIONS = set()
SEEN = []


def tool(name):
    return {"name": name, "inputSchema": {"type": "object"}}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def reply(self, status, body=b"", **headers):
        self.send_response(status)
        self.send_header("content-type", "application/json")
        for key, value in headers.items():
            self.send_header(key.replace("_", "-"), value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def answer(self, message, result, **headers):
        self.reply(200, json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode(), **headers)

    def do_GET(self):
        self.reply(405)

    def do_DELETE(self):
        SESSIONS.discard(self.headers.get("mcp-session-id"))
        self.reply(204)

    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if MODE == "requires" and self.headers.get("authorization") != "Bearer right":
            self.reply(401)
            return
        method = message.get("method")
        if method == "initialize":
            session = uuid.uuid4().hex
            SESSIONS.add(session)
            self.answer(message, {"protocolVersion": "2025-11-25", "serverInfo": {"name": "h", "version": "1"},
                                  "capabilities": {"tools": {}}}, mcp_session_id=session)  # fmt: skip
        elif method == "server/discover":
            self.reply(400, b'{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"method not found"}}')
        elif self.headers.get("mcp-session-id") not in SESSIONS:
            if MODE == "lazy":
                self.reply(400, b'{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad session ID"}}')
            else:
                self.reply(404)
        elif "id" not in message:
            self.reply(202)
        elif method == "tools/list":
            self.answer(message, {"tools": [tool(name) for name in ("call", "forget", "exit", "seen")]})
        elif method == "tools/call":
            self.call(message, message["params"]["name"])

    def call(self, message, name):
        if name == "forget":
            SESSIONS.clear()
        if name == "exit":
            os._exit(0)
        words = "done"
        if name == "seen":
            words = json.dumps({key.lower(): value for key, value in self.headers.items()})
        result = {"content": [{"type": "text", "text": words}]}
        if name == "call" and MODE == "huge":
            result["content"][0]["text"] = "x" * (33 * 1024 * 1024)
        if name == "call" and MODE == "squeezed":
            body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode()
            self.reply(200, gzip.compress(body), content_encoding="gzip")
            return
        if name == "call" and MODE == "cut":
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", "1000")
            self.end_headers()
            self.wfile.write(b'{"jsonrpc":')
            self.wfile.flush()
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True
            return
        self.answer(message, result)


ThreadingHTTPServer.daemon_threads = True
ThreadingHTTPServer(("127.0.0.1", PORT), Handler).serve_forever()
