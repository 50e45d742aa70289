"""What an exam releases with noise: totals, points, groups compared, discriminations."""
