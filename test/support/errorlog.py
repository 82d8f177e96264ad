"""A log for tests of what operators are told."""


class ErrorLog:
    """Keeps the errors, and apart from them what is for developers."""

    def __init__(self):
        #: (sentence, transaction)
        self.errors = []
        self.debugged = []

    @property
    def sentences(self):
        return [text for text, _txid in self.errors]

    def error(self, text, *, txid=None):
        self.errors.append((text, txid))

    def debug(self, text, *, txid=None):
        self.debugged.append((text, txid))

    def warning(self, text):
        """Not kept."""

    def info(self, text, *, txid=None):
        """Not kept."""
