"""What the jobs run: evaluation, screens, regret, horizons, Gaussians, sensitivity."""
