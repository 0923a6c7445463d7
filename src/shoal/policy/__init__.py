"""One file that a person can read: the columns, and what each role may see."""
