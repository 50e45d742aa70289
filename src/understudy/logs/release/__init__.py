"""The release of a log: the bundle that may leave, and the report that stays."""
