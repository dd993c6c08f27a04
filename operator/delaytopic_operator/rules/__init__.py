"""Rules over DelayTopics: which are accepted, which exclude each other, what a deletion removes. Pure."""
