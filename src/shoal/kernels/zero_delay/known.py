"""Rows by fingerprint: a hash table in one flat array, an entry two words, the key and the row."""

from shoal.kernels.compile import kernel
from shoal.kernels.zero_delay.sliding import ONE, find

NEW = -2


@kernel
def rows_of(table, keys, rows):
    """The row of each key, ``NEW`` for one that is not there; returns how many are not."""
    new = 0
    for i in range(keys.size):
        slot = find(table, keys[i])
        if table[slot] == 0:
            rows[i] = NEW
            new += 1
        else:
            rows[i] = table[slot + ONE]
    return new


@kernel
def enter(table, keys, rows):
    """Put keys and their rows into a table that has room for them."""
    for i in range(keys.size):
        slot = find(table, keys[i])
        table[slot] = keys[i]
        table[slot + ONE] = rows[i]
