"""Ground: errors, argument checks, kernels, thread blocks, random streams, solver results and the model file."""
