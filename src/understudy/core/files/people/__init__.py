"""Who is in a file: names, identifiers, people mentioned in actions, learners who withdrew."""
