#!/usr/bin/env bash
# Makes a virtual environment with everything the project needs: setup_env.sh PYTHON VENV. Debian packages are installed by apt, as
# root, only for what is missing; where apt can't be used it says what to install. Does nothing when the environment is up to date.
set -euo pipefail
cd "$(dirname "$0")/.."
python=$1
venv=$2
stamp=$venv/.pellucid-requirements

works() { "$1" -c 'import sys, ensurepip; sys.exit(sys.version_info[:2] != (3, 11))' >/dev/null 2>&1; }
has_headers() { [ -e "$("$1" -c 'import sysconfig; print(sysconfig.get_path("include"))')/Python.h" ]; }

missing=()
command -v g++ >/dev/null || missing+=(g++)
command -v ccache >/dev/null || missing+=(ccache)
command -v clang-format >/dev/null || missing+=(clang-format)
[ -e /usr/include/gtest/gtest.h ] || missing+=(libgtest-dev)
if ! works "$python"; then
  echo "$python is not a CPython 3.11 that runs; taking Debian's"
  python=/usr/bin/python3.11
  works "$python" || missing+=(python3.11 python3.11-venv)
fi
if ! works "$python" || ! has_headers "$python"; then
  missing+=(python3.11-dev)
fi
if [ ${#missing[@]} -gt 0 ]; then
  echo "installing Debian packages: ${missing[*]}"
  if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    echo "not root, or no apt-get: please install them (or the like) and run again" >&2
    exit 1
  fi
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq </dev/null
  apt-get install -y -qq --no-install-recommends "${missing[@]}" </dev/null
fi

if [ -e "$stamp" ] && cmp -s "$stamp" requirements-dev.txt; then
  exit 0
fi
[ -x "$venv/bin/python" ] || "$python" -m venv "$venv"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check -r requirements-dev.txt </dev/null
cp requirements-dev.txt "$stamp"
