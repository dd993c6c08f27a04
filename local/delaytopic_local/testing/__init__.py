"""A DelayTopic for the tests of an application: real Kafka, Redis and relays, and a clock that the test moves."""
