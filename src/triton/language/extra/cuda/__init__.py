"""Functions for NVIDIA GPUs."""
