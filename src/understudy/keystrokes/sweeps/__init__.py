"""The sweep: every coarseness with what it identifies and what it still teaches."""
