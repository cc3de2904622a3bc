"""LambdaRank for relevances that are estimated from clicks: each document against all others, by its own relevance.

With y_i in [0, 1] the estimated relevance of document i and D = 1/log2(1 + rank) at the present scores, the loss is

    Σ_i y_i Σ_{j≠i} |D_i - D_j| log(1 + exp(-σ (s_i - s_j))).

It is linear in y, so that unbiased estimates give an unbiased loss, like the sum over clicks of 1/propensity (Joachims
et al. 2017, equation 7). LambdaRank's pairs with y_i > y_j would learn the noise of the estimates.

References: T. Joachims, A. Swaminathan, T. Schnabel: Unbiased Learning-to-Rank with Biased Feedback, WSDM 2017. C.
Burges: From RankNet to LambdaRank to LambdaMART, MSR-TR-2010-82.
"""

from __future__ import annotations

import numpy as np

from truerank.core.checks import check_number
from truerank.core.errors import InvalidInputError
from truerank.losses.by_query import Block, ByQuery


class IPSLambdaRank(ByQuery):
    """LambdaRank that is linear in relevances in [0, 1], with the slope `sigma` > 0 of the logistic function. O(Σ n²)
    time.
    """

    by_place = True

    def __init__(self, sigma: float = 1.0) -> None:
        self.sigma = check_number(sigma, "sigma", minimum=0.0, open_minimum=True)

    def __call__(self, y: np.ndarray, scores: np.ndarray, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if len(y) and (y.min() < 0 or y.max() > 1):
            raise InvalidInputError(
                f"ips-lambdarank needs relevances in [0, 1], got {y.min():g} to {y.max():g}. Estimate them with "
                "`truerank clicks train-data`, or divide the grades by the highest"
            )
        return super().__call__(y, scores, offsets)

    def add(self, block: Block) -> None:
        for q in range(block.first, block.last):
            rows = slice(int(block.offsets[q]), int(block.offsets[q + 1]))
            y, s = block.y[rows], block.scores[rows]
            D = np.empty(len(s))
            D[np.argsort(-s, kind="stable")] = 1.0 / np.log2(2.0 + np.arange(len(s)))
            x = self.sigma * (s[:, None] - s[None, :])
            small = np.exp(-np.abs(x))
            rho = np.where(x >= 0, small, 1.0) / (1.0 + small)
            push = self.sigma * y[:, None] * np.abs(D[:, None] - D[None, :]) * rho
            bend = self.sigma * push * (1.0 - rho)
            block.gradients[rows] = push.sum(axis=0) - push.sum(axis=1)
            block.hessians[rows] = bend.sum(axis=0) + bend.sum(axis=1)
