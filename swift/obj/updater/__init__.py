"""The object updater: container updates that could not be delivered at once are delivered later."""
