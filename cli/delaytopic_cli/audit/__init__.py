"""`delaytopic audit`: audits from the command line and in the cluster."""
