"""Role views in a database: one table per role, its users and their rights."""
