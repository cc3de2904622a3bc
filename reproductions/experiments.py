"""The experiments, by the names of their commands."""

# Name -> module with `configure(parser)`, `run(args)` (a dict), `print_tables(result)` and perhaps `figures(result)`.
# `all` runs them in this order, the longest last.
EXPERIMENTS: dict[str, str] = {
    "adarank": "reproductions.adarank.trials",
    "letor": "reproductions.letor.experiment",
    "descent": "reproductions.descent",
    "calibration": "reproductions.calibration.experiment",
    "stand-ins": "reproductions.stand_ins",
    "svm-map": "reproductions.svm_map",
    "oblivious": "reproductions.oblivious",
}
