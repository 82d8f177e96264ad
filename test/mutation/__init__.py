"""Do the tests notice when one thing in the code is changed? ``tox -e mutation`` or ``bin/mutation --help``.

``mutants`` finds and samples the changes (operators of cosmic-ray and one of our own), ``reach`` knows which
tests execute a line, ``__main__`` makes each change in a copy of the tree, runs these tests, quickest first,
then the functional tests where none noticed, and prints the survivors.
"""
