"""Tools around the compiler."""
