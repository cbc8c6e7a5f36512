"""Where results go: sinks, each with a ledger where it can keep one, and the delivery that every sink shares."""
