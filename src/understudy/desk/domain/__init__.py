"""What the desk is about, as values: people, states, policies, results, certificates."""
