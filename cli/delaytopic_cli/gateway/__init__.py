"""The gateway: pending records over HTTP, as documents and as pages for people."""
