"""The page that lists pending records."""
