"""What a custodian declares about a log: columns, a term, tables that belong to it, and the plan that holds them."""
