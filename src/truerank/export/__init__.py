"""Models in the formats of other programs, each with a certificate of what was compared."""
