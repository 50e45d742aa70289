"""Ordinary statistics with a guarantee for every learner: `from understudy.desk import private`.

def analyze(ask):
    ask.mean("minutes", by="achievement")
    ask.linear("grade", on=["minutes", "school"])

print(private.try_out(analyze, synthetic_table, schema, epsilon=1))
"""

from __future__ import annotations

from understudy.desk.private.answers import Answer, Answers, Estimate, Test
from understudy.desk.private.plan import Plan, propose
from understudy.desk.private.questions import Question, read_question, read_questions
from understudy.desk.private.schema import Records, Schema, read_records
from understudy.desk.private.trial import Ask, Trial, expect, questions_of, try_out

__all__ = [
    "Answer",
    "Answers",
    "Ask",
    "Estimate",
    "Plan",
    "Question",
    "Records",
    "Schema",
    "Test",
    "Trial",
    "expect",
    "propose",
    "questions_of",
    "read_question",
    "read_questions",
    "read_records",
    "try_out",
]
