"""Systems over judged queries: the rules about evidence."""
