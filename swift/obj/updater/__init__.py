"""The object updater: delivers container updates that failed at the time of the request."""
