"""One plug-in of each kind. Shoal finds them by the entry points in pyproject.toml; nothing is registered in code."""
