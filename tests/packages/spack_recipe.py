#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""spack_recipe.py <source directory>: the Spack recipe loads, and its options are those of CMakeLists.txt.

Spack is replaced by stand-ins for 0.23 and 1.0: there the classes of build systems come from another module."""
import itertools
import re
import sys
import types
from pathlib import Path


class Recipe:
    """What the recipe says of itself, and a package of it."""

    def __init__(self, folder, classes_apart):
        self.variants = {"cuda": (True, False), "cuda_arch": ("none", "90")}  # those of CudaPackage
        self.conditions, self.dependencies = [], []
        recipe, self.chosen = self, set()

        class CMakePackage:
            def define(self, name, value):
                return f"-D{name}={value}"

            def define_from_variant(self, name, variant):
                assert variant in recipe.variants, f"no variant {variant}"
                return self.define(name, variant in recipe.chosen)

            @property
            def spec(self):
                return Spec()

        class Spec:
            variants = {"cuda_arch": types.SimpleNamespace(value=("90",))}

            def __getitem__(self, name):
                assert name in recipe.dependencies, f"does not depend on {name}"
                return types.SimpleNamespace(mpicc="cc", mpicxx="cxx", mpifc="fc")

            def satisfies(self, text):
                assert text[0] == "+" and text[1:] in recipe.variants, text
                return text[1:] in recipe.chosen

        class CudaPackage:
            pass

        def variant(name, default, description, values=(True, False), multi=False):
            assert default in values and description and not multi
            self.variants[name] = values

        def depends_on(spec, type=None, when=None):
            self.dependencies.append(re.match(r"[\w-]+", spec)[0])
            self.conditions.append(when)

        def requires(spec, when=None):
            assert re.match(r"\^\[virtuals=\w+\] \w", spec), spec
            self.conditions.append(when)

        def conflicts(spec, when=None, msg=None):
            self.conditions.append(when)

        classes = {"CMakePackage": CMakePackage, "CudaPackage": CudaPackage}
        package = {"variant": variant, "depends_on": depends_on, "requires": requires,
                   "conflicts": conflicts, "version": lambda name: None, "license": lambda name: None}
        modules = {"spack": {}, "spack.package": {**package, **({} if classes_apart else classes)}}
        if classes_apart:
            modules.update({"spack_repo": {}, "spack_repo.builtin": {}, "spack_repo.builtin.build_systems": {}})
            for name, cls in classes.items():
                modules["spack_repo.builtin.build_systems." + name.replace("Package", "").lower()] = {name: cls}
        before = dict(sys.modules)
        for name, contents in modules.items():
            sys.modules[name] = types.ModuleType(name)
            vars(sys.modules[name]).update(contents, __path__=[])
        try:
            here = {}
            exec((folder / "packages/mpix/package.py").read_text(encoding="utf-8"), here)  # pylint: disable=exec-used
            self.package = here["Mpix"]()
            assert isinstance(self.package, CMakePackage) and isinstance(self.package, CudaPackage)
        finally:
            sys.modules.clear()
            sys.modules.update(before)


def check(recipe, options):
    for name in ("mpi", "cuda", "ucx"):
        assert name in recipe.variants, f"no variant {name}"
    assert {"openmpi", "mpich"} <= set(recipe.variants["mpi"])
    # As dependencies they would come in addition to the provider of "mpi".
    assert not set(recipe.variants["mpi"]) & set(recipe.dependencies), recipe.dependencies
    for condition in filter(None, recipe.conditions):
        for name, value in re.findall(r"[+~]?(\w+)(?:=(\w+))?", condition):
            assert name in recipe.variants, f"{condition}: no variant {name}"
            assert not value or value in recipe.variants[name], condition
    switches = [name for name in recipe.variants if name not in ("mpi", "cuda_arch")]
    for n in range(len(switches) + 1):
        for chosen in itertools.combinations(switches, n):
            recipe.chosen = set(chosen)
            for argument in recipe.package.cmake_args():
                name = re.match(r"-D(\w+)=", argument)[1]
                assert name in options, f"CMakeLists.txt has no {name}"


def main():
    source = Path(sys.argv[1])
    folder, = (source / "packaging/spack/spack_repo").iterdir()
    settings = dict(re.findall(r"^  (\w+): (\S+)$", (folder / "repo.yaml").read_text(encoding="utf-8"), re.M))
    assert settings == {"namespace": folder.name, "api": "v2.0"}, settings
    head = (source / "CMakeLists.txt").read_text(encoding="utf-8").split("cmake_minimum_required")[0]
    options = set(re.findall(r"\b(\w+)=", head))
    for classes_apart in (False, True):
        check(Recipe(folder, classes_apart), options)
    print("the recipe loads, and its options are those of CMakeLists.txt")


if __name__ == "__main__":
    main()
