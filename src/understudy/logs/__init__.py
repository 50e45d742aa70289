"""Logs of learners' actions: records, generators, attacks, utility, studies, releases."""
