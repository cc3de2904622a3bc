"""Error rates, coverage and power behind every statistical promise: `python -m validation NAME`."""
