"""What a bucket tells webhooks: which events, by which queue, and the daemon that delivers them."""
