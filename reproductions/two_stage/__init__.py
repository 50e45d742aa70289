"""The two-stage paper: what yearly cycles gain."""
