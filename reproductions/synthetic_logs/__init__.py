"""Synthetic logs from a Markov chain and a recurrent network, against dropping rows (Vie, Rigaux and Minn 2022)."""
