"""swift-aio: a whole replicated cluster on one machine from one command."""

from swift.cli.aio.main import main

__all__ = ["main"]
