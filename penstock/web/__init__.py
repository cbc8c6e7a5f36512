"""Pages that are served on this machine: who may ask, and what every answer says."""
