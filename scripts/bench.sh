#!/bin/sh
# All benchmarks, or those named: sh scripts/bench.sh tables local
# Peers come from the registry. Those that pin other versions of our libraries live in folders of their own.
set -eu
cd "$(dirname "$0")/.."
PATH="$PWD/.venv/bin:$PATH"
export PATH
if [ ! -f .cache/peers/.whole ]; then
  mkdir -p .cache/peers
  python -m pip install --quiet --disable-pip-version-check matplotlib microagg1d orjson psutil uv zanon==0.3.4
  python -m pip install --quiet --disable-pip-version-check --target .cache/peers/pycanon pycanon
  python -m pip install --quiet --disable-pip-version-check --target .cache/peers/presidio presidio-analyzer || true
  touch .cache/peers/.whole
fi
SHOAL_BENCH_PYCANON="$PWD/.cache/peers/pycanon"
SHOAL_BENCH_PRESIDIO="$PWD/.cache/peers/presidio"
export SHOAL_BENCH_PYCANON SHOAL_BENCH_PRESIDIO
if [ $# -eq 0 ]; then
  set -- $(ls benchmarks/bench_*.py | sed 's|benchmarks/bench_||; s|\.py||')
fi
for name in "$@"; do
  python -m "benchmarks.bench_$name"
done
