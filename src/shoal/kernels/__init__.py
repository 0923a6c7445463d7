"""The engine room: compiled loops, integer arrays in, integer arrays out, no other knowledge."""
