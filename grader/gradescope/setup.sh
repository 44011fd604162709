#!/usr/bin/env bash
# Prepares a Gradescope image, as root, once. Python's packages go into a virtual environment beside the
# source, which only root can read.
#   TORCH_INDEX  where pip finds a CPU build of torch
#   PYTHON       the interpreter to use
set -euo pipefail
root="${AUTOGRADER_ROOT:-/autograder}"
python="${PYTHON:-python3}"
torch_index="${TORCH_INDEX-https://download.pytorch.org/whl/cpu}"

if ! "$python" -c "import ensurepip, venv, ctypes; ctypes.CDLL('libseccomp.so.2')" 2>/dev/null; then
    export DEBIAN_FRONTEND=noninteractive
    apt-get update
    apt-get install --yes --no-install-recommends python3 python3-pip python3-venv libseccomp2
fi

"$python" -m venv "$root/venv"
pip=("$root/venv/bin/python" -m pip install --no-cache-dir --disable-pip-version-check --constraint "$root/source/constraints.txt")
if [ -z "$torch_index" ] || ! "${pip[@]}" --index-url "$torch_index" torch; then
    echo "warning: no CPU build of torch at '$torch_index'; taking the usual one, which may be large" >&2
    "${pip[@]}" torch
fi
"${pip[@]}" --requirement "$root/source/requirements.txt"

# A name for the users that submissions run under, so that nobody else gets the first of them.
getent passwd 60500 >/dev/null || useradd --system --no-create-home --uid 60500 --shell /usr/sbin/nologin hw3-submission
"$root/venv/bin/python" -m compileall -q "$root/source/grader"
chmod -R u=rwX,go= "$root/source"
"$root/venv/bin/python" -c "import torch; print('torch', torch.__version__)"
