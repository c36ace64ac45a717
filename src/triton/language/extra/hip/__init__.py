"""Functions for AMD GPUs."""
