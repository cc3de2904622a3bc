"""Matrices of rows: dense, sparse and binned; their products, borders and sorts."""
