"""Matrices of rows (dense, sparse and binned): products, borders and sorts."""
