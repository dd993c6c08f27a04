"""Documents of the audit: words, rules, manifest, report."""
