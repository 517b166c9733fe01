"""What is read from compat/, stacks/ and locks: facts, no decisions."""
