"""The language of policies: documents, evaluation, and the actions of the Swift API."""
