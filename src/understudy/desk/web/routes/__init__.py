"""The desk's routes: pages by subject, and the API."""
