"""The desk's web server: pages for people, an API for programs. What may be done is decided below, in service."""
