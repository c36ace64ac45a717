"""Lowering of laid-out tile IR to LLVM IR for machines whose programs are many threads in lockstep groups.

``lower.py`` is the entry; ``machine.py`` says what a target must supply; ``context.py`` holds the state of one
function.
"""
