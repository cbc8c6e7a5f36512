"""The dashboard: what needs attention, and the plane, of a run while it runs and after it has stopped."""
