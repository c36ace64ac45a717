"""Tile IR to LLVM IR, as text: the parts that no target needs to know about. Start reading at ``writer.py``."""
