"""The playground: every core idea as a thing to bend, played by the reference engine."""
