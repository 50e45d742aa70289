"""Programs that run one generator of others each, in an environment of its own: they import nothing of ours."""
