"""The data under compat/ and stacks/, locks, and what roles conclude from them."""
