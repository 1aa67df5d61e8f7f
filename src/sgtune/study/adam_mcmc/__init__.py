"""The study of AdamMCMC: the numerical evaluation that Bieringer et al. (2023) postpone."""
