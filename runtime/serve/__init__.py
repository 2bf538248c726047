"""`ptc serve`: an MCP server that offers `run_code` over the tools of other MCP servers and of Python modules.

    serve        from a configuration to a server that runs                     serve.py
    transports   lines of standard input and output; streamable HTTP            wire.py, http.py
    service      what clients ask, answered: tools, calls, changes              service.py
    telling      what clients are told of the server and its tools              telling.py
    clients      one agent for each client, with its rules and its sandbox      clients.py
    exchange     one call on its way: progress, questions, cancellation         exchange.py

The modules here need the official SDK, so nothing imports them before `ptc serve` does.
"""
