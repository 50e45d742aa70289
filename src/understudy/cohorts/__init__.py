"""Small cohorts: a private summary, a panel that writes generators, synthetic cohorts."""
