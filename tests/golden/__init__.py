"""Checkpoints and tables that older versions wrote, one folder a version, and the test that this one goes on from each.

`python -m tests.golden.write` writes the set of the version at hand, `python -m tests.golden.servers` what lies on
servers. A set that was released is never written again, and the pipelines in `cases.py` never change: each change of
what lies on disk raises the minor version and adds its set, by which it is read ever after, or refused in words.
"""
