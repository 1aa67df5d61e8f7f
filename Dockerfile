# README's first command in a container. Built and run with podman from Debian 12 and its Python 3.11; not yet from this base image.
#   docker build -t sgtune . && docker run --rm -v "$PWD/results:/sgtune/results" -v "$PWD/.snakemake:/sgtune/.snakemake" sgtune
# Without .snakemake a later run with other settings finds nothing to do.
FROM python:3.11-slim
RUN apt-get update && apt-get install --yes --no-install-recommends git && rm -rf /var/lib/apt/lists/*
WORKDIR /sgtune
COPY . .
# The versions that the published numbers were made with.
RUN pip install --no-cache-dir -r envs/requirements.lock && pip install --no-cache-dir --no-deps -e .
CMD ["snakemake", "--cores", "all"]
