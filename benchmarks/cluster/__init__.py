"""Partitions on a Dask cluster: speed beside peers, bytes, memory, lost workers, equality with one machine."""
