"""The ladder of Gaussians: posteriors of growing dimension whose every error is known, on which tuners are judged."""
