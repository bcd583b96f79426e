"""Studies against peers and against the machine's limit; none of it is installed."""
