"""What runs in the worker process: the standard library, RestrictedPython and the guest, and nothing else of ptc."""
