"""What a fitted ranker does: importance, stability."""
