"""The reproduction kit: protocols, published tables, one module or folder a paper; nothing imports it but the command line."""
