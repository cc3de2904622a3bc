"""Train and apply rankers on a Dask cluster, or on data that do not fit into memory; see docs/scale-out.md."""

from truerank.cluster.clients import connect
from truerank.cluster.data import (
    from_dask_collections,
    from_dask_dataframe,
    from_memory,
    from_parts,
    read_letor,
    read_parquet,
)
from truerank.cluster.partitioned_data import ClusterRankingData

__all__ = [
    "ClusterRankingData",
    "connect",
    "from_dask_collections",
    "from_dask_dataframe",
    "from_memory",
    "from_parts",
    "read_letor",
    "read_parquet",
]
