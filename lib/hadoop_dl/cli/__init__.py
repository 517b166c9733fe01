"""The commands of scripts/."""
