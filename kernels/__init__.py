"""Real kernels, each a module with one public entry of the same name."""
