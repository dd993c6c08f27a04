"""Documents of the audit: rules, manifest, schemas, report."""
