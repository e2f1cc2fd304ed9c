"""What the doctor finds, and that it finds each fault."""
