"""Hostile submissions, and the world that they must leave as it was."""
