"""How every kernel is compiled: cached on disk between runs, without the interpreter lock, exact arithmetic.

No fast-math anywhere: a release must not depend on the rounding of one machine.
"""

import hashlib
import os
from functools import partial
from pathlib import Path
from typing import Any

from numba import config, njit


def _cache_folder() -> str:
    """A folder named by the sources of all kernels.

    The compiler's own stamp knows only a function's own file: after a change in a kernel that others call, they would
    go on running the old code.
    """
    digest = hashlib.blake2b(digest_size=8)
    for file in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(file.read_bytes())
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")  # noqa: PTH111, PTH118
    return str(Path(base) / "shoal" / digest.hexdigest())


settings: Any = config
if not settings.CACHE_DIR:  # NUMBA_CACHE_DIR, if somebody set it, is theirs
    settings.CACHE_DIR = _cache_folder()

kernel: Any = partial(njit, cache=True, nogil=True, error_model="numpy")

# for loops that hand their arrays on to other functions for every element: without numba's reference counting,
# which costs more there than the work. Such a kernel may not create arrays.
bare = partial(kernel, _nrt=False)
