#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# images.sh SOURCE WORK CMAKE-OPTION...: what .dockerignore and packaging/mpix.def let into an image is the same, is in
# git, and is all that CMake reads and installs.
set -euo pipefail
source=$1 work=$2
shift 2
rm -rf "$work"
mkdir -p "$work/context"
cd "$source"

sed -n 's/^!//p' .dockerignore | sort >"$work/docker"
sed -n '/^%files$/,/^%post$/s|^ *\([^ ]*\) /mpix/.*|\1|p' packaging/mpix.def | sort >"$work/apptainer"
diff "$work/docker" "$work/apptainer"
grep -qx '[*]' .dockerignore || { echo ".dockerignore has no line '*'"; exit 1; }
while read -r path; do
    # In a release there is no git.
    if git rev-parse HEAD >/dev/null 2>&1 && [ -z "$(git ls-files "$path")" ]; then
        echo "$path is not in git"
        exit 1
    fi
    mkdir -p "$work/context/$(dirname "$path")"
    cp -r "$path" "$work/context/$(dirname "$path")/"
done <"$work/docker"
for copied in $(sed -n 's/^COPY \([^-].*\) [^ ]*$/\1/p' packaging/Dockerfile .devcontainer/Dockerfile); do
    [ -e "$work/context/$copied" ] || { echo "a Dockerfile copies $copied, which .dockerignore leaves out"; exit 1; }
done

cmake -S "$work/context" -B "$work/build" -DBUILD_TESTING=OFF -DMPIX_CUDA=OFF "$@"
# CMake notices files that it installs, or packs, only then.
missing=0
while read -r file; do
    [ -e "$file" ] || { echo "not in an image: $file"; missing=1; }
done < <(grep -rhoE --include=cmake_install.cmake --include=CPackConfig.cmake "$work/context/[^\" ;]+" "$work/build" |
    sort -u)
exit $missing
