#!/usr/bin/env bash
# Builds a release into DIR (default: dist): an archive of the binary and a wheel for each platform,
# the licences of all modules inside, and checksums. The same commit gives the same bytes.
#
#   deploy/release.sh [DIR]
#
# It needs Go, and Python 3.10 or later with `pip install build`. PYTHON names the interpreter. TARGETS=linux/amd64 builds that alone.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
out=$(realpath -m "${1:-dist}")
python=${PYTHON:-python3}
targets=${TARGETS:-linux/amd64 linux/arm64 darwin/arm64}
version=$(sed -n 's/^version = "\(.*\)"/\1/p' deploy/python/pyproject.toml)
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2>/dev/null || echo 1577836800)
export SOURCE_DATE_EPOCH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# The tool that packs a wheel names its version in it.
echo hatchling==1.33.0 >"$work/constraints"
export PIP_CONSTRAINT=$work/constraints
rm -rf "$out"
mkdir -p "$out"

# Licences: of each module that is compiled in, its name, version and licence files, whole.
modules=$(go list -deps -f '{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}} {{.Dir}}{{end}}{{end}}' ./cmd/taxon | sort -u)
while read -r path v dir; do
	files=$(find "$dir" -maxdepth 1 -type f \( -iname 'licen[cs]e*' -o -iname 'copying*' -o -iname 'notice*' -o -iname 'unlicense*' \) | sort)
	[ -n "$files" ] || { echo "$path $v has no licence file" >&2; exit 1; }
	printf '=== %s %s\n\n' "$path" "$v"
	for f in $files; do cat "$f"; printf '\n'; done
done <<<"$modules" >"$work/LICENSES.txt"

for target in $targets; do
	name=taxon-$version-${target/\//-}
	mkdir "$work/$name"
	CGO_ENABLED=0 GOOS=${target%/*} GOARCH=${target#*/} go build -trimpath -ldflags '-s -w -buildid=' -o "$work/$name/taxon" ./cmd/taxon
	cp README.md NOTICE "$work/LICENSES.txt" docs/changelog.md "$work/$name"
	tar -C "$work" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --mode=u+rwX,go+rX,go-w -cf - "$name" | gzip -n9 >"$out/$name.tar.gz"
	TAXON_TARGET=$target TAXON_BINARY=$work/$name/taxon TAXON_LICENSES=$work/LICENSES.txt "$python" -m build --wheel --outdir "$out" deploy/python >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
	echo "$target: built"
done
cp "$work/LICENSES.txt" "$out"
(cd "$out" && sha256sum -- * >"$work/sums" && mv "$work/sums" SHA256SUMS && cat SHA256SUMS)
