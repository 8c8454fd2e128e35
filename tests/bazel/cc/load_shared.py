"""Loads a C++ library that was built without a compiler of the machine."""

import ctypes
import os
import sys

library = ctypes.CDLL(os.path.abspath(sys.argv[1]))
count = library.count_words(b"a bb ccc dddd")
if count != 4:
    sys.exit(f"count_words says {count}, not 4")
