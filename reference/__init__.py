"""The homework, solved: what the hidden checks compare with. Never shipped, never seen by a worker."""
