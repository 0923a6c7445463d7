#!/bin/sh
# All benchmarks, or those named: sh scripts/bench.sh tables local
# Peers run in an environment of their own (.cache/peers): some pin versions that differ from ours.
set -eu
cd "$(dirname "$0")/.."
PEERS=.cache/peers
if [ ! -x "$PEERS/bin/python" ]; then
  python3 -m venv "$PEERS"
  "$PEERS/bin/python" -m pip install --quiet --disable-pip-version-check pycanon anjana anonypy microagg1d zanon || true
fi
export SHOAL_PEERS="$PWD/$PEERS/bin/python"
if [ $# -eq 0 ]; then
  set -- $(ls benchmarks/bench_*.py | sed 's|benchmarks/bench_||; s|\.py||')
fi
for name in "$@"; do
  .venv/bin/python -m "benchmarks.bench_$name"
done
