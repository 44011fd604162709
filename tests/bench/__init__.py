"""Measurements: ratios within one run, never a test."""
