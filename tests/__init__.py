"""Tests of the harness. A check examines a submission; a test examines the grader."""
