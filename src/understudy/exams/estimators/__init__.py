"""Estimators of the Rasch model: joint, marginal, conditional, and from noisy totals."""
