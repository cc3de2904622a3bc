"""Store models as data: the registry of names and the model file."""
