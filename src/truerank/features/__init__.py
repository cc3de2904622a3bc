"""Features for rankers: scores of several systems as a matrix, transformers within the query, and score binning."""
