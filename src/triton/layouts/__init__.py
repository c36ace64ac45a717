"""Linear layouts: the one mechanism that says where the elements of a tile are. See ``linear.py``."""
