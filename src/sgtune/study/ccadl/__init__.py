"""The study of the covariance-controlled thermostat: the experiments of Shang et al. (2015), Sect. 4."""
