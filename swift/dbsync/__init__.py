"""Replication of account and container databases."""
