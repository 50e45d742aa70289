"""Formats of learning platforms and of published data sets, a module each: from a file to an EventTable."""
