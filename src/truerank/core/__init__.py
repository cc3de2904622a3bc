"""Ground: errors, argument checks, atomic files, whole fits, kernels, threads over fixed blocks, random streams."""
