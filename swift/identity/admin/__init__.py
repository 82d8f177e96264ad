"""Changes of identities: of ``swift-user``, the IAM API and the console."""
