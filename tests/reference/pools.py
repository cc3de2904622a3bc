"""Leave-one-group-out: the judgements without what only one group ranked, by loops over documents."""

from __future__ import annotations


def without_group(qrels, runs, groups, group, depth):
    """`qrels` {topic: {document: grade}} without documents that, to a depth, only runs of `group` have."""
    left = {}
    for topic, grades in qrels.items():
        left[topic] = {}
        for document, grade in grades.items():
            who = set()
            for name, run in runs.items():
                ranked = sorted(run.get(topic, {}).items(), key=lambda one: (one[1], one[0]), reverse=True)[:depth]
                if document in dict(ranked):
                    who.add(groups[name])
            if who != {group}:
                left[topic][document] = grade
    return left
