"""A module of a plain py_library that no build can import."""

import numpy as np

SIZE = np.int64(4)
