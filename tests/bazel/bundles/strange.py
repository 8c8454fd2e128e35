"""A library file that imports what a build does not offer."""

import numpy as np

SIZE = np.int64(4)
