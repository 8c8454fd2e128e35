"""What programs mean: `interpreter` runs one in NumPy float64, after any pass; the other modules have the operations."""
