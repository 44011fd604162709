"""Checks that compare with the reference."""
