"""The study of posteriors as users bring them: raw columns, hierarchies, heavy tails."""
