"""Access control: bucket policies, ACLs and the one check before an operation."""
