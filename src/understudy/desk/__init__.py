"""The validation desk: researchers' code on the real data, reviewed, checked and priced before anything leaves."""
