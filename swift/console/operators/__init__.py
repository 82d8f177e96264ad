"""Pages for operators: health, devices, rings, accounts."""
