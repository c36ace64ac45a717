"""What `dev.py` needs beyond the standard library: run with the Python of its tools environment."""
