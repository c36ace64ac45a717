"""The native extension, `libtriton`."""
