"""Models in the formats of other tools: one file a format, each read without the tool."""
