"""Programs of peers that run in environments of their own: they import nothing of ours."""
