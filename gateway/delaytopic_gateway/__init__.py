"""The gateway: pending records and dead letters over REST and as pages, for those who may."""
