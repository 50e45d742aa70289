"""The keystroke thesis: knowledge of the attacker, WEKA's methods."""
