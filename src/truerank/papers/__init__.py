"""The reproduction kit: protocols, published tables, one module a paper; nothing imports it but the command line."""
