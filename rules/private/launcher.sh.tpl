#!/bin/sh
# Runs a Python program of pypto from its runfiles, apart from the caller's Python settings and site-packages.
set -eu
runfiles="${RUNFILES_DIR:-${TEST_SRCDIR:-$0.runfiles}}"
case "$runfiles" in
    /*) ;;
    *) runfiles="$PWD/$runfiles" ;;
esac
if [ ! -d "$runfiles" ]; then
    echo "$0: its runfiles are not in $runfiles; start it with 'bazel run'" >&2
    exit 1
fi
export RUNFILES_DIR="$runfiles"
exec "%{interpreter}" -I -S -B -X utf8 "$runfiles/%{step}" "$runfiles/%{program}" %{arguments} "$@"
