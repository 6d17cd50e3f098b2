#!/usr/bin/env bash
# `make bench`: every benchmark, in the environment it needs; fails if a limit is missed.
set -uo pipefail
cd "$(dirname "$0")"
failed=0
../.envs/test/bin/python imports.py || failed=1
../.envs/peer/bin/python off.py 2> >(grep -v Warning >&2) || failed=1
../.envs/test/bin/python idle.py || failed=1
../.envs/test/bin/python spans.py || failed=1
../.envs/test/bin/python recording.py || failed=1
../.envs/test/bin/python collect.py || failed=1
../.envs/test/bin/python timeline.py 4x50 ranks || failed=1
../.envs/test/bin/python device.py 2x64 || failed=1
../.envs/test/bin/python diff.py || failed=1
../.envs/test/bin/python nsys.py || failed=1
../.envs/test/bin/python fleet.py 2> >(grep -v raylet >&2) || failed=1
../.envs/vllm/bin/python vllm_requests.py 2> >(grep -v -i warning >&2) || failed=1
../.envs/vllm/bin/python vllm_adapter.py 2> >(grep -v -i warning >&2) || failed=1
../.envs/sglang/bin/python sglang_requests.py 2> >(grep -v -i -e warn -e 'cuda graph' >&2) || failed=1
../.envs/sglang/bin/python sglang_adapter.py 2> >(grep -v -i warn >&2) || failed=1
exit $failed
