"""What an error says of the user's code: unknown names, wrong calls, functions that fail."""
