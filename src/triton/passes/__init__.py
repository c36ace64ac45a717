"""Passes over the tile IR: one file and one public function each, ``Module -> Module``, changing the module in place.

``pipeline.py`` shows the order and its reasons; ``manager.py`` runs a sequence. A pass reads analyses and rules, asks
the capabilities record about the target and never its name, and walks each function a fixed number of times.
"""
