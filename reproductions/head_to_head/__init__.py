"""Our generators against those of others: utility, attacks, cost, and what each epsilon covers."""
