# README's first command in a container. Not tested: its base image was out of reach.
#   docker build -t sgtune . && docker run --rm -v "$PWD/results:/sgtune/results" sgtune
FROM python:3.11-slim
RUN apt-get update && apt-get install --yes --no-install-recommends git && rm -rf /var/lib/apt/lists/*
WORKDIR /sgtune
COPY . .
# The versions that the published numbers were made with.
RUN pip install --no-cache-dir -r envs/requirements.lock && pip install --no-cache-dir --no-deps -e .
CMD ["snakemake", "--cores", "all"]
