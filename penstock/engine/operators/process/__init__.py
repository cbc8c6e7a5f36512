"""Users' keyed functions: calls, state, timers, rules."""
