"""The mode of the posterior (MAP), where chains start, and the curvature there."""
