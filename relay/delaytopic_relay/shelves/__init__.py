"""Where schedules due beyond the horizon wait: the protocol of a shelf, and the shelves there are."""
