"""Platform formats to one table of events, which logs, exams and cohorts all read."""
