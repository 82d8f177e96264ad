"""What waits are made of, whichever loop runs: ``swift.green`` has the loop and is what others import."""
