"""Logs in databases: addresses, connections, rows in blocks."""
