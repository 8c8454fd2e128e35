"""What each kernel computes, written in NumPy with float64: the tests' reference."""
