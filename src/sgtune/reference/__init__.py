"""What tuners are judged against: the mode (`map`), the curvature there (`curvature`), NUTS draws (`nuts`).

Import the module that is needed: `nuts` alone loads NumPyro and ArviZ, and those only when it samples.
"""
