"""`delaytopic local`: DelayTopics on one machine, with real servers and real relays."""
