#!/usr/bin/env bash
# Prints the path of an interpreter of Python 3.10 or 3.14, the oldest and the newest that the package is for.
#
#   deploy/python/interpreter.sh 3.10|3.14
#
# One on the PATH is taken. Without it, on Linux x86-64, JavaCPP's build comes from Maven Central (needs mvn) into the user's cache.
set -euo pipefail
if "python$1" -c '' 2>/dev/null; then
	command -v "python$1"
	exit
fi
case $1/$(uname -sm) in
"3.10/Linux x86_64") artifact=3.10.8-1.5.8 ;;
"3.14/Linux x86_64") artifact=3.14.3-1.5.13 ;;
*)
	echo "python$1 is not on the PATH: install it" >&2
	exit 1
	;;
esac
dir=${XDG_CACHE_HOME:-$HOME/.cache}/taxon/cpython-$artifact
if [ ! -x "$dir/org/bytedeco/cpython/linux-x86_64/bin/python$1" ]; then
	mkdir -p "$dir"
	mvn -q -B dependency:copy -Dartifact="org.bytedeco:cpython:$artifact:jar:linux-x86_64" -DoutputDirectory="$dir" >&2
	python3 -m zipfile -e "$dir/cpython-$artifact-linux-x86_64.jar" "$dir"
	rm "$dir"/*.jar
	chmod +x "$dir"/org/bytedeco/cpython/linux-x86_64/bin/python*
fi
echo "$dir/org/bytedeco/cpython/linux-x86_64/bin/python$1"
