"""Pages and figures for people: one look, self-contained, offline."""
