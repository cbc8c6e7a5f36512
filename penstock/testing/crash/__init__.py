"""A pipeline killed for real, started again, and compared with what it should have written."""
