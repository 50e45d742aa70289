"""Private item difficulties, and what a student can make of them without telling anybody."""
