"""What a job of the workflow does around its work: log, files, provenance, finished parts."""
