#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# release.sh SOURCE WORK: scripts/release on a clone of the source's commit: the same bytes twice, and what it refuses.
set -euo pipefail
source=$1 work=$2
git -C "$source" rev-parse HEAD >/dev/null 2>&1 || { echo "skipped: no git repository"; exit 77; }
rm -rf "$work"
mkdir -p "$work"
git -c safe.directory='*' clone -q --no-tags "$source" "$work/clone"
cd "$work/clone"
cp "$source/scripts/release" scripts/release # what is being changed, too
git config user.name test
git config user.email test@localhost
git add -A
git commit -q --allow-empty -m test

fails() { # WORDS OPTION...
    local words=$1 said
    shift
    if said=$(scripts/release --output "$work/refused" "$@" 2>&1); then
        echo "not refused: $words"
        exit 1
    fi
    [[ $said == *"$words"* ]] || { echo "not \"$words\" but \"$said\""; exit 1; }
}

scripts/release --untagged --output "$work/one"
find . -name "*.md" -exec touch -d 2001-01-01 {} + # other times of the files make no difference
scripts/release --untagged --output "$work/two"
cmp "$work"/one/mpix-*.tar.gz "$work"/two/mpix-*.tar.gz
(cd "$work/one" && sha256sum -c --quiet ./*.sha256)

version=$(basename "$work"/one/mpix-*.tar.gz .tar.gz)
version=${version#mpix-}
tar -xzf "$work/one/mpix-$version.tar.gz" -C "$work"
diff <(git ls-files | sort) <(cd "$work/mpix-$version" && find . -type f -o -type l | sed 's|^[.]/||' | sort)

sed -i "s/^## $version.*/## $version, not released yet/" CHANGELOG.md
echo >>README.md
fails "the tree has changes" --untagged
git commit -q --allow-empty -am unreleased
fails "CHANGELOG.md says: $version, not released yet"
sed -i "s/^## $version.*/## $version/" CHANGELOG.md
git commit -q -am released
fails "this commit has no tag v$version"
git tag "v$version"
scripts/release --output "$work/tagged"
sed -i "s/^## $version.*/## next/" CHANGELOG.md
git commit -q -am forgotten
fails "CHANGELOG.md has no section of $version"
