"""Requests and responses as values, and the rules of the API about them."""
