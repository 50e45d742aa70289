"""The private Rasch paper: its tables and an audit of its proof."""
