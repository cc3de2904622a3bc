"""A test that hangs, for the test of the time limit."""

import time


def test_hangs():
    time.sleep(60)
