"""Work that callers do by themselves, with Kafka, with relays or with a gateway: the gateway does the same for them."""
