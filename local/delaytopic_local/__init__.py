"""Delayed topics on one machine: embedded servers, `delaytopic local`, the demo, and the verifier of its deliveries."""
