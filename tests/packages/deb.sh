#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# deb.sh BUILD WORK SOURCE MPI MPIRUN...: packs what is built, unpacks the Debian package under another root, and runs a
# program against it. (scripts/test-roots installs it on bare systems.)
set -euo pipefail
build=$1 work=$2 source=$3 mpi=$4
shift 4
rm -rf "$work"
mkdir -p "$work"
cd "$build"
cpack -G DEB -B "$work/packed" >"$work/cpack.log" 2>&1 || { cat "$work/cpack.log"; exit 1; }
package=("$work"/packed/*.deb)
[ ${#package[@]} = 1 ] || { echo "several packages: ${package[*]}"; exit 1; }

field() { dpkg-deb --field "${package[0]}" "$1"; }
[ "$(field Package)" = "mpix-$mpi" ] || { echo "Package: $(field Package)"; exit 1; }
[ "$(field Conflicts)" = mpix ] && [ "$(field Provides)" = mpix ] || { echo "it goes together with others"; exit 1; }
# What the library is linked to is found by dpkg-shlibdeps; what the headers need is named.
for needed in libc6 "lib$mpi-dev"; do
    [[ $(field Depends) == *"$needed"* ]] || { echo "Depends has no $needed: $(field Depends)"; exit 1; }
done

dpkg-deb --extract "${package[0]}" "$work/unpacked"
prefix=$work/unpacked/usr
for file in bin/mpix_info bin/mpixcc include/mpix/mpix.h share/doc/mpix/LICENSE; do
    [ -e "$prefix/$file" ] || { echo "no $file"; exit 1; }
done
"$prefix/bin/mpix_info" >/dev/null
"$prefix/bin/mpixcc" "$source/tests/install/consumer/ring.c" -o "$work/ring"
"$@" "$work/ring"

# The module file, as Environment Modules read it. Not without Tcl, which scripts/install-packages installs.
modulefile=$(find "$prefix/share/modulefiles/mpix" -type f)
if command -v tclsh >/dev/null; then
    tclsh >"$work/module.txt" <<TCL
proc module-whatis {text} {}
proc conflict {name} {}
proc prepend-path {variable path} { puts "\$variable \$path" }
set ModulesCurrentModulefile $modulefile
source $modulefile
TCL
    while read -r variable path; do
        [ -d "$path" ] || { echo "the module file sets $variable to $path, which is not there"; exit 1; }
    done <"$work/module.txt"
    grep -q "^LD_LIBRARY_PATH $prefix/lib" "$work/module.txt"
    [ -e "$(sed -n 's/^LD_LIBRARY_PATH //p' "$work/module.txt")/libmpix.so" ]
else
    echo "no tclsh: the module file was not read"
fi
