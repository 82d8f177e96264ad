"""swift-aio: a whole replicated cluster on one machine from one command."""
