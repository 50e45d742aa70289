"""Numbers in, parameters out: the Rasch model, the Markov chain, the next-outcome model."""
