"""What a released answer costs in privacy: the membership game, measured. Never a guarantee."""
