"""The desk in a browser: pages for people, and an API for programs."""
