"""Learners over rows that live elsewhere: `statistics(part, *state)` add up over the parts, a step follows here."""
