"""Users, groups, roles, access keys and policies of a cluster, and their rights."""
