"""ListNet: the sum of the partitions' cross entropies, minimised by L-BFGS."""

from truerank.cluster.fits.linear import fit_linear as fit_partitions

__all__ = ["fit_partitions"]
