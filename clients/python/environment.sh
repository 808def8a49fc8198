#!/usr/bin/env bash
# Prints the folder of a Python environment with what requirements/NAME.txt pins and with this package, made when it is absent.
#
#   environment.sh NAME        dev, oldest, airflow-3.3, airflow-2.11 or kfp; PYTHON says for which Python (python3, the first in PATH)
#
# The package is installed as editable: a change of its sources is there at once. One environment per content of what it is
# made from and per place of the sources, below the user's cache; any of them may be deleted. Needs Debian's python3-venv. Where
# packages come from is the configuration of pip and uv.
set -euo pipefail

uv_version=0.13.9

project=$(cd "$(dirname "$0")" && pwd -P)
requirements=$project/requirements/${1:?"which environment? one of: $(cd "$project/requirements" && echo *.txt | sed 's/\.txt//g')"}.txt
[ -f "$requirements" ] || { echo "there is no $requirements" >&2; exit 2; }
python=$("${PYTHON:-python3}" -c 'import sys; print(sys.executable)')
cache=${XDG_CACHE_HOME:-$HOME/.cache}/dagbridge/python
mkdir -p "$cache"

# make FOLDER COMMAND...: runs the command to make the folder, once, whoever else wants it now; what was interrupted is made anew.
# Environments hold their own path, so they are made in place; the file in them says that all is there.
make() {
	local folder=$1
	[ ! -e "$folder/complete" ] || return 0
	(
		flock 9
		[ ! -e "$folder/complete" ] || exit 0
		rm -rf "$folder"
		"${@:2}" >&2
		touch "$folder/complete"
	) 9>"$folder.lock"
}

make_uv() {
	"$python" -m venv "$uv" || { echo "python3-venv is missing: apt-get install python3-venv" >&2; exit 1; }
	"$uv/bin/python" -m pip install --quiet --disable-pip-version-check "uv==$uv_version"
}

make_environment() {
	"$uv/bin/uv" venv --quiet --python "$python" "$environment"
	"$uv/bin/uv" pip install --quiet --python "$environment" --requirement "$requirements"
	"$uv/bin/uv" pip install --quiet --python "$environment" --no-deps --editable "$project"
}

version=$("$python" -c 'import sys; print(sys.version)')
digest=$({
	cat "$requirements" "$0"
	sed '/^\[tool\.mypy\]/,$d' "$project/pyproject.toml" # what follows is for tools, and changes nothing that is installed
	echo "$project $python $version"
} | sha256sum | cut -c1-12)
uv=$cache/uv-$uv_version
environment=$cache/$1-$digest
make "$uv" make_uv
make "$environment" make_environment
echo "$environment"
