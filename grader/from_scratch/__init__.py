"""Find the operators that must not be used from scratch: in the source, and while the code runs."""
