"""The SQLite engine of accounts and containers."""
