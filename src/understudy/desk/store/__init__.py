"""Where the desk keeps its state: tables, transactions, the chained log of what happened, migrations."""
