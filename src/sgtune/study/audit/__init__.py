"""What the defects of the code behind the paper do to its numbers."""
