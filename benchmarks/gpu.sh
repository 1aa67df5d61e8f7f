#!/usr/bin/env bash
# The library on a machine with one GPU, in less than eight minutes: benchmarks/gpu.sh [--out FILE] [--seconds S] [--small]
# Needs a Python with JAX for the GPU and the packages of tests; BlackJAX, if it is there. --small: minutes on a CPU.
set -euo pipefail
cd "$(dirname "$0")/.."
export PYTHONPATH="$PWD/src:$PWD/benchmarks${PYTHONPATH:+:$PYTHONPATH}" PYTHONUNBUFFERED=1
# Several processes of the tests share the card.
export XLA_PYTHON_CLIENT_PREALLOCATE=false
exec "${PYTHON:-python3}" benchmarks/gpu.py "$@"
