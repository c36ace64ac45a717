"""Mathematical library."""
