"""What programs mean: `interpreter` runs one in NumPy float64, after any pass; the others have the operations."""
