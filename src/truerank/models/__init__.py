"""Models as data: the registry of names and the model file."""
