"""audit_log: JSON lines about requests that change something or are refused."""
