"""Subcommands of the ring commands: how devices are named, printed and changed.

The executables are ``cli.ring_builder``, ``cli.ring_builder_analyzer`` and ``cli.ring_composer``.
spec: ring.md §11-13
"""
