"""The lifecycle and inventory daemon, and the notifier of events."""
