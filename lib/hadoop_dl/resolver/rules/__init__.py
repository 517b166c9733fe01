"""The rules of the resolver, by what they are about."""
