"""Rewrite rules by theme: tables of equations (``integers``, ``floats``), functions with an equation (``casts``,
``shapes``, ``memory``) and the arithmetic of constants. ``pattern.py`` says what a rule is; ``catalogue.py`` collects
them for the folding pass.

Every rule is directional and never makes a program worse: what stands on the right costs at most what it replaces.
"""
