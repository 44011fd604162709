"""Checks that need no reference: laws, and torch's own operators as the oracle."""
