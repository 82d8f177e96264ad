"""ratelimit: request rates of accounts and containers (spec: middleware.md §13)."""
