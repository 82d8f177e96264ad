"""Files of the checkout that are made from the code: ``python -m tools.generate [--check]``."""
