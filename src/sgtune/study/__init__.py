"""The studies of the papers: their data, models, jobs and artifacts. Nothing outside this package imports it."""
