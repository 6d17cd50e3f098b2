#!/usr/bin/env bash
# Print a Python of this release, `python.sh 3.10`, or say that there is none.
for python in "python$1" "$HOME/.pyenv/versions/$1".*/bin/python; do
    if "$python" -c '' 2>/dev/null; then
        echo "$python"
        exit
    fi
done
echo "envs: here is no Python $1, so nothing is tested on it" >&2
exit 1
