"""The planner: capacity, changes of rings, a discrete-event simulator, and the search for hardware."""
