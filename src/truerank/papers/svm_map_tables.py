"""Figures published in Yue et al. (2007), tables 7, 8, 10 and 11: TREC 9, submitted runs as base functions."""

from __future__ import annotations

TITLES = {
    "svm-map": "SVM-MAP",
    "best-base": "best run",
    "second-base": "2nd run",
    "third-base": "3rd run",
    "svm-roc": "SVM-ROC",
    "svm-acc": "SVM-acc",
    "svm-acc2": "SVM-acc2",
    "svm-acc3": "SVM-acc3",
    "svm-acc4": "SVM-acc4",
}
PUBLISHED = {
    "all runs": {
        "svm-map": 0.290, "best-base": 0.280, "second-base": 0.269, "third-base": 0.266, "svm-roc": 0.282,
        "svm-acc": 0.213, "svm-acc2": 0.270, "svm-acc3": 0.133, "svm-acc4": 0.233,
    },
    "without the best run": {
        "svm-map": 0.284, "best-base": 0.280, "second-base": 0.269, "third-base": 0.266, "svm-roc": 0.274,
        "svm-acc": 0.215, "svm-acc2": 0.267, "svm-acc3": 0.133, "svm-acc4": 0.228,
    },
}  # fmt: skip
PUBLISHED_WINS = {
    "all runs": {
        "best-base": "28/22", "second-base": "30/20", "third-base": "30/20", "svm-roc": "29/21", "svm-acc": "49/1 **",
        "svm-acc2": "34/16 **", "svm-acc3": "50/0 **", "svm-acc4": "47/3 **",
    },
    "without the best run": {
        "best-base": "27/23", "second-base": "30/20", "third-base": "30/20", "svm-roc": "31/19 **",
        "svm-acc": "49/1 **", "svm-acc2": "35/15 **", "svm-acc3": "50/0 **", "svm-acc4": "46/4 **",
    },
}  # fmt: skip
