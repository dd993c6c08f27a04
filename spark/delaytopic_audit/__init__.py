"""The SLO audit: proves from the topics themselves that every record arrived, once, on time."""
