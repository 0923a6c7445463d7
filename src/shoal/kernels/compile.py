"""How every kernel is compiled: cached on disk between runs, without the interpreter lock, exact arithmetic.

No fast-math anywhere: a release must not depend on the rounding of one machine.
"""

from functools import partial
from typing import Any

from numba import njit

kernel: Any = partial(njit, cache=True, nogil=True, error_model="numpy")

# for loops that hand their arrays on to other functions for every element: without numba's reference counting,
# which costs more there than the work. Such a kernel may not create arrays.
bare = partial(kernel, _nrt=False)
