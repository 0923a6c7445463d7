"""How good and how risky a release is."""
