"""Where data come from and where they go."""
