"""A small clinic in SQLite: ``python make.py`` writes ``clinic.db``."""

import sqlite3

import shoal


def main() -> None:
    """Invented patients, one table."""
    patients = shoal.hospital(400, seed=1)
    with sqlite3.connect("clinic.db") as clinic:
        clinic.execute("create table patients (pid integer, zip text, sex text, age integer, diag text)")
        rows = patients.select("pid", "zip", "sex", "age", "diag").rows()
        clinic.executemany("insert into patients values (?, ?, ?, ?, ?)", rows)
    clinic.close()


if __name__ == "__main__":
    main()
