"""The data sets: simulated or downloaded, checked by SHA-256 when they are made and when they are read."""
