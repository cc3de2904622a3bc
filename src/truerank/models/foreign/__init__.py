"""Read models in the formats of other tools without these tools, with one module for each format."""
