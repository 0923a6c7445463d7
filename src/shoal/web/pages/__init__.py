"""The pages of the studio, a file per step."""
