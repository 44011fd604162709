"""Hypothesis strategies for the cases, by family.

A family is what a group of checks is run on. Its kinds say which coincidences of sizes it meets and
how often: as a rule sizes are pairwise distinct, so that no two axes can be mistaken for each other,
and some cases make them equal on purpose. Each part has a file with its own `FAMILIES`.
"""
