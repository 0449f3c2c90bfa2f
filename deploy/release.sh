#!/usr/bin/env bash
# Builds a release into DIR (default: dist in the repository): an archive of the binary and a wheel for each platform,
# the licences of all modules inside, and checksums. The same commit gives the same bytes.
#
#   deploy/release.sh [DIR]
#
# DIR is a new folder, an empty one, or an earlier release, which is replaced when the new one is complete. It needs Go,
# and Python 3.10 or later with `pip install build`. PYTHON names the interpreter. TARGETS=linux/amd64 builds that alone.
set -euo pipefail
root=$(realpath "$(dirname "${BASH_SOURCE[0]}")/..")
out=$(realpath -m -- "${1:-$root/dist}")
cd "$root"

# Nothing is ever removed but files that have a release's names and stand in its SHA256SUMS.
own='(LICENSES\.txt|taxon-[0-9][A-Za-z0-9._-]*(-(linux|darwin)-(amd64|arm64)\.tar\.gz|-py3-none-[A-Za-z0-9._]*\.whl))'
earlier=()
refuse() {
	echo "$out $1: name a new folder" >&2
	exit 2
}
if [ -e "$out" ]; then
	[ -d "$out" ] || refuse "is no folder"
	listed=$(cat "$out/SHA256SUMS" 2>/dev/null || true)
	while IFS= read -r -d '' name; do
		[ "$name" != SHA256SUMS ] || continue
		[[ $name =~ ^$own$ && -f $out/$name && ! -L $out/$name ]] && grep -qxE "[0-9a-f]{64}  ${name//./\\.}" <<<"$listed" ||
			refuse "holds $name, which is no part of a release"
		earlier+=("$name")
	done < <(find "$out" -mindepth 1 -maxdepth 1 -printf '%f\0')
	if [ -e "$out/SHA256SUMS" ]; then
		! grep -qvxE "[0-9a-f]{64}  $own" <<<"$listed" || refuse "holds SHA256SUMS, which is not a release's"
		earlier+=(SHA256SUMS)
	fi
fi

python=${PYTHON:-python3}
targets=${TARGETS:-linux/amd64 linux/arm64 darwin/arm64}
version=$(sed -n 's/^version = "\(.*\)"/\1/p' deploy/python/pyproject.toml)
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2>/dev/null || echo 1577836800)
export SOURCE_DATE_EPOCH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
built=$work/release
mkdir "$built"
# The tool that packs a wheel names its version in it.
echo hatchling==1.33.0 >"$work/constraints"
export PIP_CONSTRAINT=$work/constraints

# Licences: of each module that is compiled in and not of this repository, its name, version and licence files, whole.
modules=$(go list -deps -f '{{with .Module}}{{if not (or .Main .Replace)}}{{.Path}} {{.Version}} {{.Dir}}{{end}}{{end}}' ./cmd/taxon | sort -u)
while read -r path v dir; do
	files=$(find "$dir" -maxdepth 1 -type f \( -iname 'licen[cs]e*' -o -iname 'copying*' -o -iname 'notice*' -o -iname 'unlicense*' \) | sort)
	[ -n "$files" ] || { echo "$path $v has no licence file" >&2; exit 1; }
	printf '=== %s %s\n\n' "$path" "$v"
	for f in $files; do cat "$f"; printf '\n'; done
done <<<"$modules" >"$work/LICENSES.txt"

for target in $targets; do
	name=taxon-$version-${target/\//-}
	mkdir "$work/$name"
	CGO_ENABLED=0 GOOS=${target%/*} GOARCH=${target#*/} go build -trimpath -tags grpcnotrace -ldflags '-s -w -buildid=' -o "$work/$name/taxon" ./cmd/taxon
	cp README.md NOTICE "$work/LICENSES.txt" docs/changelog.md "$work/$name"
	tar -C "$work" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --mode=u+rwX,go+rX,go-w -cf - "$name" | gzip -n9 >"$built/$name.tar.gz"
	TAXON_TARGET=$target TAXON_BINARY=$work/$name/taxon TAXON_LICENSES=$work/LICENSES.txt "$python" -m build --wheel --outdir "$built" deploy/python >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
	echo "$target: built"
done
cp "$work/LICENSES.txt" "$built"
(cd "$built" && sha256sum -- * >"$work/sums")
mv "$work/sums" "$built/SHA256SUMS"

# SHA256SUMS goes last and comes first: a folder in which this was interrupted is still an earlier release.
mkdir -p "$out"
for name in "${earlier[@]}"; do rm -- "$out/$name"; done
mv "$built/SHA256SUMS" "$out"
mv "$built"/* "$out"
cat "$out/SHA256SUMS"
