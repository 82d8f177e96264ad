"""What a bucket's lifecycle says, and the daemon that carries it out."""
