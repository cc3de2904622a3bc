"""Learn ranking functions: one algorithm in each file, and their common code in `base`."""
