"""The worker: answers requests, sends mail."""
