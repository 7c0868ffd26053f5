#!/usr/bin/env bash
# Installs the header-only libraries of the build from Debian packages, where that is allowed, and for the tests a browser. Never
# fails: the libraries that are missing afterwards are fetched by CMake, and without a browser the tests of the report pages are
# skipped. Usage: system_packages.sh [python] [tests]
set -uo pipefail

python=${1:-python3}
missing=()
[ -e /usr/include/nlohmann/json.hpp ] || missing+=(nlohmann-json3-dev)
[ -e /usr/include/CLI/CLI.hpp ] || missing+=(libcli11-dev)
[ -e /usr/include/doctest/doctest.h ] || missing+=(doctest-dev)
python_h=$("$python" -c 'import sysconfig; print(sysconfig.get_path("include") + "/Python.h")')
[ -e "$python_h" ] || missing+=(python3-dev)
"$python" -c 'import ensurepip' 2> /dev/null || missing+=(python3-venv)
if [ "${2:-}" = tests ] && ! command -v chromium chromium-browser google-chrome > /dev/null; then missing+=(chromium); fi
[ ${#missing[@]} -gt 0 ] || exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then as_root=(sudo -n); fi
if ! command -v apt-get > /dev/null || ! "${as_root[@]}" true 2> /dev/null; then
  echo "Not installed (no apt-get, or no right to use it): ${missing[*]}. CMake fetches the header-only libraries;" \
    "without chromium the tests of the report pages are skipped."
  exit 0
fi
echo "Installing ${missing[*]}"
install() { "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "$@"; }
install "${missing[@]}" || { "${as_root[@]}" apt-get update -q && install "${missing[@]}"; } ||
  echo "apt-get could not install ${missing[*]}; going on without."
exit 0
