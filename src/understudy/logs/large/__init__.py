"""Logs larger than memory: put together from pieces, summed part by part, written in parts."""
