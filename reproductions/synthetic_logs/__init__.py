"""Synthetic logs from a Markov chain, against dropping rows (Vie, Rigaux and Minn 2022)."""
