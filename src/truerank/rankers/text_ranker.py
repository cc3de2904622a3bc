"""TextRanker: keep a ranker together with its text features, so that a saved model ranks raw text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from truerank.core.errors import InvalidInputError
from truerank.core.parameters import parameters
from truerank.core.schema import check_fields
from truerank.core.types import ArrayLike
from truerank.data.ranking_data import RankingData
from truerank.features.score_binning import ScoreBinning
from truerank.io.documents import Document
from truerank.io.trec import Qrels, Run
from truerank.rankers.base import Ranker
from truerank.text.features import TextFeatures
from truerank.text.index import Index


@parameters
class TextRanker(BaseEstimator):
    """Rank documents for queries by features from an index and a ranker.

    Parameters
    ----------
    ranker : Ranker
        Unfitted ranker.
    features : TextFeatures, optional
        None means all families.
    binning : ScoreBinning, optional
        Bins of each feature, for rankers that accept a `BinnedMatrix`.

    Attributes
    ----------
    features_ : TextFeatures
    binning_ : ScoreBinning or None
    ranker_ : Ranker
    calibrator_ : Calibrator or None
        Turns scores into probabilities of relevance; `truerank text pipeline` sets one.

    Examples
    --------
    >>> import io, tempfile
    >>> from truerank import SingleFeature, build_index, read_judgements
    >>> documents = [Document("a", {"text": "heat flow"}, {}, {}), Document("b", {"text": "flow flow"}, {}, {})]
    >>> index = build_index(documents, tempfile.mkdtemp() + "/index")
    >>> ranker = TextRanker(SingleFeature("idf-coverage.all"), TextFeatures(["coverage"]))
    >>> ranker = ranker.fit({"1": "heat flow"}, index, read_judgements(io.BytesIO(b"1 0 a 1")))
    >>> ranker.rank({"2": "the flow of heat"}, index).doc_ids.tolist()
    ['a', 'b']
    """

    model_attributes: ClassVar[dict[str, str]] = {
        "features_": "TextFeatures",
        "binning_": "ScoreBinning??",
        "ranker_": "Ranker",
        "calibrator_": "Calibrator??",
    }

    ranker: Ranker
    features: TextFeatures | None = None
    binning: ScoreBinning | None = None

    def fit(self, queries: Iterable[Document] | Mapping[str, str], index: Index, qrels: Qrels) -> TextRanker:
        """Compute the features of the queries' candidates and train on them."""
        features = (TextFeatures() if self.features is None else clone(self.features)).fit(index)
        self.fit_rows(features.transform(queries, index, qrels))
        self.features_ = features
        return self

    def fit_rows(self, data: RankingData) -> TextRanker:
        """Train binning and ranker on existing features."""
        binning = None if self.binning is None else clone(self.binning).fit(data.X)
        ranker = clone(self.ranker).fit(_binned(binning, data))
        self.binning_, self.ranker_ = binning, ranker
        self.calibrator_: Any = None
        return self

    def predict(self, data: RankingData) -> np.ndarray:
        """Return scores of rows of features, in the caller's row order."""
        check_is_fitted(self, "ranker_")
        return self.ranker_.predict(_binned(self.binning_, data))

    def rank(self, queries: Iterable[Document] | Mapping[str, str], index: Index) -> Run:
        """Rank the candidates of each query.

        Parameters
        ----------
        queries : iterable of Document, or dict of id to text
        index : Index
            The index of `fit`, or another index with the same fields.

        Returns
        -------
        Run
            Candidates by decreasing score, equal scores by decreasing BM25. Queries without candidates are left out.
        """
        check_is_fitted(self, "features_")
        data = self.features_.transform(queries, index)
        scores = self.predict(data)
        order = np.lexsort((-scores, data.query_index))
        assert data.doc_ids is not None
        return Run(data.query_ids, data.offsets, data.doc_ids[order], scores[order], "truerank")

    def predict_proba(self, scores: ArrayLike) -> np.ndarray:
        """Return P(not relevant) and P(relevant) for scores of this ranker, float64 (n, 2).

        Raises
        ------
        InvalidInputError
            If no calibrator was set.
        """
        calibrator = getattr(self, "calibrator_", None)
        if calibrator is None:
            raise InvalidInputError(
                "this model has no calibrator. `truerank text pipeline` fits one, unless a constant is better",
                code="no-calibrator",
            )
        return calibrator.predict_proba(scores)

    def check_model(self) -> None:
        """Check features, ranker and binning after loading."""
        self.binning_ = getattr(self, "binning_", None)
        columns, first = len(self.features_.feature_names_), "ranker_" if self.binning_ is None else "binning_"
        check_fields(self, {f"{first}.n_features_in_": f"int in [{columns}, {columns}]"})


def _binned(binning: ScoreBinning | None, data: RankingData) -> RankingData:
    """Return the rows with binned features."""
    if binning is None:
        return data
    X = binning.transform(data.X)
    names = data.feature_names
    if names is not None and X.shape[1] != len(names):
        names = binning.get_feature_names_out(names).tolist()
    return data.replaced(X=X, feature_names=names)
