"""Models of logs: the Markov chain, the Rasch model, the next outcome, denoised counts."""
