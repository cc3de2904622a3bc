"""Growth over dense rows: a level in one kernel, which all threads run at once.

The rows answer the question of the level before, those of the smaller children are brought together, and block by block
of features histograms are added up and searched. Each step is cut into pieces, of which a thread takes the next when it
has done one, without a word of Python in between; before the next step it waits for pieces that others have begun. The
last block's sums are shared out by rows, for no thread is to be idle while another adds up a whole block.
"""

from __future__ import annotations

import time

import numpy as np

from truerank.core.kernel import kernel
from truerank.core.kernel_atomics import fetch_add
from truerank.core.threads import Workers
from truerank.matrices.binning import BLOCK, CodedMatrix
from truerank.trees.grower import Grower, GrowthRules, Level, Question, TreeStructure, search_level
from truerank.trees.histogram import PackedGradients, accumulate, accumulate_all, split_histograms
from truerank.trees.sampled_rows import answer, count_rows, gather_rows

# Elements of `progress`: of each step the number of the next piece and how many are done; whether a thread has failed.
_ANSWER, _ANSWERED, _GATHER, _GATHERED, _SEARCH, _ADDED, _FAILED = range(7)
_LOOKS = 10_000  # at pieces that others have begun, some hundred microseconds
_NAP = 5e-5  # seconds, after so many looks: the others may have lost their processors
_NOTHING = (0, np.uint64(0), -1, False)


class DenseGrower(Grower):
    """Grows trees over one dense coded matrix; holds the histograms between levels and trees."""

    def __init__(self, matrix: CodedMatrix, rules: GrowthRules, workers: Workers) -> None:
        super().__init__(matrix, rules, workers)
        self._codes = matrix.codes.view(np.uint64).reshape(matrix.codes.shape[:2])
        self._features = np.arange(matrix.n_features)
        leaves, width, threads = 1 << max(0, rules.depth - 1), BLOCK * 256, workers.n_threads
        self._own = [np.empty((leaves, width), dtype=np.int64) for _ in range(threads)]  # stay in the threads' caches
        self._shares = np.empty((threads if threads > 1 else 0, max(1, leaves // 2), width), dtype=np.int64)

    def grow(self, packed: PackedGradients, allowed: np.ndarray, counted: float | None = None) -> TreeStructure:
        """See `Grower`."""
        n = len(packed.rows) // 2  # the smaller children have no more
        self._taken = np.empty(n, dtype=np.int32), np.empty(n, dtype=np.int64)
        self._asked: tuple[Level, Question] | None = None  # what the rows have not answered yet
        tree = super().grow(packed, allowed, counted)
        del self._taken
        return tree

    def _ask(self, level: Level, question: Question) -> np.ndarray:
        if level.number + 1 == self.rules.depth:
            return super()._ask(level, question)
        self._asked = level, question
        return np.empty(0, dtype=np.bool_)  # which children are read is found out with the answers

    def _search_blocks(self, used: np.ndarray, level: Level) -> float:
        sampled, number = self._sampled, level.number
        asked: tuple[int, np.uint64, int, bool] = _NOTHING
        counts, taken = sampled.counts, (sampled.rows, sampled.words)
        if self._asked is not None:
            question = self._asked[1]
            block, slot = divmod(question.feature, BLOCK)
            asked = block, np.uint64(8 * slot), question.code, question.missing_right
            counts, taken = np.empty((len(sampled.counts), 1 << number), dtype=np.int64), self._taken
        before, progress = np.empty(1), np.zeros(7, dtype=np.int64)
        arguments = (
            progress, sampled.bounds, self._codes, *asked, sampled.rows, sampled.words, sampled.leaf, counts, *taken,
            self._hist, number + 1 < self.rules.depth, self._shares, number, used, self._features, level.permitted,
            self._n_bins, self._missing, self._monotone, self._smoothing, level.weights, level.shift, self._gains,
            self._questions, self._children, before,
        )  # fmt: skip

        def join(own: np.ndarray) -> None:
            try:
                while not work_at_level(own, *arguments) and not progress[_FAILED]:
                    time.sleep(_NAP)
            except BaseException:
                progress[_FAILED] = 1  # nobody is to wait for what this thread has begun
                raise

        self.workers.run(join, [(own,) for own in self._own])
        self._asked, sampled.counts = None, counts
        return float(before[0])


@kernel
def work_at_level(
    own, progress, bounds, codes, block, shift, code, missing_right, rows, words, leaf, counts, taken_rows, taken_words,
    hist, keep, shares, number, used, features, permitted, n_bins, missing, monotone, smoothing, scales, bits, gains,
    questions, children, before,
):  # fmt: skip
    """Do pieces of a level until none is left; False where others take long with theirs: to be called again.

    The question that is answered is about the feature in `block` with `shift`; `taken_rows` and `taken_words` get the
    rows of the smaller children, and are all rows at the root, which answers none. `hist` int64 (blocks, leaves, 2048)
    has the histograms of the level before; those of this one are kept if asked. `own` is this thread's alone. Many
    arguments: all that is known of the rows, of the level and of the features, and what is found, as `search_level`
    writes it.
    """
    n_runs = bounds.size - 1
    half = (1 << number) >> 1
    slots = max(1, half)
    small_is_right = np.zeros(half, dtype=np.bool_)
    taken = counts
    ends = bounds
    if number > 0:
        while True:
            run = fetch_add(progress, _ANSWER, 1)
            if run >= n_runs:
                break
            start, stop = bounds[run], bounds[run + 1]
            if rows.size == codes.shape[1]:
                answer(codes[block, start:stop], shift, rows[:0], leaf[start:stop], number - 1, code, missing_right)
            else:
                answer(codes[block], shift, rows[start:stop], leaf[start:stop], number - 1, code, missing_right)
            count_rows(leaf[start:stop], counts[run])
            fetch_add(progress, _ANSWERED, 1)
        if not _all_done(progress, _ANSWERED, n_runs):
            return False
        chosen = np.empty(half, dtype=np.int64)
        for q in range(half):
            small_is_right[q] = counts[:, half + q].sum() <= counts[:, q].sum()
            chosen[q] = q + half * small_is_right[q]
        taken = np.empty((n_runs, half), dtype=np.int64)
        ends = np.zeros(n_runs + 1, dtype=np.int64)
        for run in range(n_runs):
            for q in range(half):
                taken[run, q] = counts[run, chosen[q]]
            ends[run + 1] = ends[run] + taken[run].sum()
        while True:
            run = fetch_add(progress, _GATHER, 1)
            if run >= n_runs:
                break
            start, stop, first, last = bounds[run], bounds[run + 1], ends[run], ends[run + 1]
            gather_rows(
                rows[start:stop], words[start:stop], leaf[start:stop], chosen, taken[run], taken_rows[first:last],
                taken_words[first:last],
            )  # fmt: skip
            fetch_add(progress, _GATHERED, 1)
        if not _all_done(progress, _GATHERED, n_runs):
            return False
    # The last block is done in as many pieces as there are threads, of as many runs of rows each.
    whole, parts = used.size, shares.shape[0]
    if parts > 0:
        whole -= 1
    fresh = own[half : half + slots]
    while True:
        piece = fetch_add(progress, _SEARCH, 1)
        if piece >= whole + parts:
            return True
        here = used[min(piece, used.size - 1)]
        if piece < whole:
            fresh[:] = 0
            _add_runs(codes[here], bounds, rows, taken_rows, taken_words, taken, ends, 0, n_runs, fresh)
        else:
            part = piece - whole
            share = shares[part, :slots]
            share[:] = 0
            first, last = n_runs * part // parts, n_runs * (part + 1) // parts
            _add_runs(codes[here], bounds, rows, taken_rows, taken_words, taken, ends, first, last, share)
            if fetch_add(progress, _ADDED, 1) < parts - 1:
                continue
            fresh[:] = shares[0, :slots]
            for other in range(1, parts):
                for q in range(slots):
                    for j in range(fresh.shape[1]):
                        fresh[q, j] += shares[other, q, j]
        if half > 0:
            split_histograms(hist[here], own, small_is_right)
        if keep:
            hist[here, : 1 << number] = own[: 1 << number]
        before[0] = search_level(
            own, 1 << number, features[8 * here : 8 * here + 8], permitted, n_bins, missing, monotone, smoothing,
            scales, bits, gains, questions, children,
        )  # fmt: skip


@kernel
def _add_runs(codes, bounds, rows, taken_rows, taken_words, taken, ends, first, last, hist):
    """Add the words of the taken rows of some runs to the histograms of their slots."""
    start, stop = bounds[first], bounds[last]
    if rows.size == codes.size and taken_rows.size == codes.size:
        accumulate_all(codes[start:stop], taken_words[start:stop], hist[0])
    elif ends[last] > ends[first]:
        if rows.size < codes.size:
            start = np.int64(rows[start])
            stop = np.int64(rows[stop]) if stop < rows.size else codes.size
        of_rows = slice(ends[first], ends[last])
        accumulate(codes, start, stop, taken_rows[of_rows], taken_words[of_rows], taken[first:last], hist)


@kernel
def _all_done(progress, step, n_pieces):
    """Wait until all pieces of a step are done, not for long; returns whether they are."""
    looks = 0
    while fetch_add(progress, step, 0) < n_pieces:
        if looks == _LOOKS:
            return False
        looks += 1
    return True
