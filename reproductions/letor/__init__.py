"""LETOR's two collections: `experiment`, its rows (`learners`), the AdaRank paper's figures there (`discussions`)."""
