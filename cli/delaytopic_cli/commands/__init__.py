"""The subcommands, one module each; each is imported when it is called."""
