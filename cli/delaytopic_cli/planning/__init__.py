"""What the operator would do with documents, before anybody applies them."""
