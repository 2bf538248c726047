"""The program's world: the same files run inside CPython-on-wasm and inside the restricted worker.

Standard library only, because inside the component there is nothing else.
"""
