"""Files of answers to exams: sheets, lists and logs."""
