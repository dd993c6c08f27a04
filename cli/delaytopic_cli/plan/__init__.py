"""The operator's plan for documents, before anybody applies them."""
