"""One file a person can read aloud: the columns, and what each role may see."""
