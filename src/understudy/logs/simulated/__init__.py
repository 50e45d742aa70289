"""Logs of learners who never existed: a classroom, its term, a Moodle course, a course of words."""
