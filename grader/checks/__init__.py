"""What is asked of a submission. `public` ships with the handout, `hidden` stays with staff."""
