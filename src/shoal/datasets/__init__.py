"""Seeded generators with the published shape of the data the papers used: nothing here was ever a person."""
