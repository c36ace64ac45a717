"""Python source to tile IR: capture of the user's functions (``source.py``) and the builder of modules
(``build.py``)."""
