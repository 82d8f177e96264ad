"""Event loops and the primitives on top of them.

Other packages import ``swift.green``, which chooses the loop.
"""
