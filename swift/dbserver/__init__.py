"""Account and container servers share this: verbs over brokers, and the auditor of databases."""
