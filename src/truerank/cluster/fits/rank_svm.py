"""RankSVM: Newton's method whose sums over pairs are the partitions' sums."""

from truerank.cluster.fits.linear import fit_linear as fit_partitions

__all__ = ["fit_partitions"]
