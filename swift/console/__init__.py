"""The console: pages for users and operators, by the public APIs with the caller's own rights."""
