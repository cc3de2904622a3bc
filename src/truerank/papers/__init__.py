"""The reproduction kit: protocols, published tables, one module or folder a paper; nothing but the faces imports it."""
