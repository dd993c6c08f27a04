"""The cost of an SLO audit, in processes of their own."""
