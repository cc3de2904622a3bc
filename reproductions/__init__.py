"""Published experiments, run with the installed truerank: `python -m reproductions NAME`."""
