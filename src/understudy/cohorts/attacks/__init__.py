"""Attacks on synthetic cohorts: whose weeks helped to make one?"""
