"""Read-only facts about functions of the tile IR. Each module has one public ``analyse`` and one linear walk."""
