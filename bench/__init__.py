"""How fast and how heavy the main path is; each figure stands beside a baseline of its own time."""
