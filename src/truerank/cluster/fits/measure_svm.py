"""MeasureSVM: cutting planes, each the sum of the partitions' planes."""

from truerank.cluster.fits.linear import fit_linear as fit_partitions

__all__ = ["fit_partitions"]
