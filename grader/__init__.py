"""The grader of HW3, "Transformer from scratch": it decides, and never runs a student's code itself."""

__version__ = "0.1.0"
