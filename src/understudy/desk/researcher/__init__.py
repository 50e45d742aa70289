"""What a researcher runs at home: the trial, and a client of the desk."""
