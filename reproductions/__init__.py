"""Reproductions of published results, one folder per paper; they are not part of the installed package.

A folder has `measure.py`, which writes tables and figures into docs/reproductions, `page.py`, which renders the page
from them, and the methods that only the paper needs.
"""
