"""What everything uses: one-line errors, whole files, cores, named random keys, hyperparameters of arms."""
