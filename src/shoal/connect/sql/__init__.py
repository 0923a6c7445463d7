"""Tables of databases, in and out: PostgreSQL, SQLite and DuckDB through ADBC, Arrow end to end (extra ``sql``).

``postgresql://ana@db.example/clinic#patients`` is a table, and so is ``env:CLINIC_URL#patients``, where the variable
holds the address with its password.
"""

from shoal.connect.sql.address import Address as Address
from shoal.connect.sql.address import is_address as is_address
from shoal.connect.sql.reading import read as read
from shoal.connect.sql.writing import write as write
