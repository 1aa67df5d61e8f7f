"""Where data come from: simulated or downloaded, checked by SHA-256 when made and when read."""
