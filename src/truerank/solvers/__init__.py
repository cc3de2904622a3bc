"""How it is minimised: each solver takes a loss and returns a result with a status."""
