"""Policies that come with the runtime, each an ordinary user of the registry's seams, and imported by its module."""
