"""Releases of tables that do not fit at once: region by region, on one machine or on many, verified as a whole."""
