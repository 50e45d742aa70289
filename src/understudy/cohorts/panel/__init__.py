"""The panel of language models that writes generators from a summary."""
