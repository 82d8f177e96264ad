"""swift-dispersion-populate and swift-dispersion-report: whether copies are where the rings say."""
