#!/bin/sh
# Makes a Python environment with the peers that versus runs beside taxon.
# Usage: bench-env.sh DIR (default: $TAXON_PEERS, else taxon-peers in the user's cache)
set -eu
dir=${1:-${TAXON_PEERS:-${XDG_CACHE_HOME:-$HOME/.cache}/taxon-peers}}
if [ ! -e "$dir/bin/python" ]; then python3 -m venv "$dir"; fi
"$dir/bin/pip" install --quiet --disable-pip-version-check libpecos==1.2.8 omikuji==0.5.2
ldconfig -p 2>/dev/null | grep -q 'liblinear.so.4' || echo "bench-env: install liblinear-tools 2.3.0 (apt-get install liblinear-tools)" >&2
echo "$dir"
