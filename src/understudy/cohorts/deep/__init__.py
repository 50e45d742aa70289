"""The deep baseline: variational autoencoders with private training (extra `deep`)."""
