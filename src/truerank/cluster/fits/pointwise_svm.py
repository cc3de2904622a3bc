"""PointwiseSVM: cutting planes of the hinge on single documents, each the sum of the partitions' parts."""

from truerank.cluster.fits.linear import fit_linear as fit_partitions

__all__ = ["fit_partitions"]
