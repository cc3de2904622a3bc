"""Charts and HTML pages."""
