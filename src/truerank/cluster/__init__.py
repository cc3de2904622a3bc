"""The same rankers over data that live on a Dask cluster, or that do not fit into memory: see docs/scale-out.md."""

from truerank.cluster.clients import connect as connect
from truerank.cluster.dask_collections import from_dask_collections as from_dask_collections
from truerank.cluster.data import (
    ClusterRankingData as ClusterRankingData,
    from_dask_dataframe as from_dask_dataframe,
    from_parts as from_parts,
    read_letor as read_letor,
    read_parquet as read_parquet,
)
