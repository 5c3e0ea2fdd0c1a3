# SPDX-License-Identifier: BSD-3-Clause
#
# For Spack, from a checkout:
#     spack repo add packaging/spack/spack_repo/mpix
#     spack dev-build --source-path . mpix@main mpi=mpich +cuda cuda_arch=90
from spack.package import *

try:
    from spack_repo.builtin.build_systems.cmake import CMakePackage
    from spack_repo.builtin.build_systems.cuda import CudaPackage
except ImportError:
    pass  # before Spack 1.0 they are in spack.package


class Mpix(CMakePackage, CudaPackage):
    """MPI-4 partitioned communication, triggered from inside GPU kernels. A library in front of the MPI library, by the
    profiling interface."""

    license("BSD-3-Clause")

    # Built from a checkout (dev-build); an archive by scripts/release has no address of its own.
    version("main")

    variant("mpi", default="openmpi", values=("openmpi", "mpich", "any"), multi=False,
            description="The MPI library that mpix is for; any: whichever Spack chooses")
    variant("ucx", default=True, description="Transfers between nodes by UCX, which is loaded where it is there")
    variant("verbs", default=True, description="Transfers between nodes by libibverbs, likewise")
    variant("png", default=True, description="Pictures of slices of halo fields")
    variant("scotch", default=False, description="Placements of many boxes begin with those of Scotch, loaded likewise")
    variant("fortran", default=True, description="The modules mpix, mpix_halo and mpix_device")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("fortran", type="build", when="+fortran")
    depends_on("cmake@3.25:", type="build")
    depends_on("python@3.8:", type="build")  # for the man pages
    depends_on("mpi@3.1:")
    # Not depends_on: that would add an MPI library to the one that Spack chooses for "mpi".
    requires("^[virtuals=mpi] openmpi@4.1:", when="mpi=openmpi")
    requires("^[virtuals=mpi] mpich@4.0:", when="mpi=mpich")
    requires("^[virtuals=mpi] mpich+fortran", when="mpi=mpich +fortran")
    depends_on("fmt@9:")
    depends_on("ucx", when="+ucx")
    depends_on("rdma-core", when="+verbs")
    depends_on("libpng", when="+png")
    depends_on("scotch@7:", when="+scotch")
    depends_on("cuda@12:", when="+cuda")

    conflicts("%gcc@:11", msg="mpix needs C++20")
    conflicts("%clang@:13", msg="mpix needs C++20")
    conflicts("cuda_arch=none", when="+cuda", msg="name the GPUs: cuda_arch=90")

    def cmake_args(self):
        args = [
            self.define("BUILD_TESTING", False),
            self.define("MPI_C_COMPILER", self.spec["mpi"].mpicc),
            self.define("MPI_CXX_COMPILER", self.spec["mpi"].mpicxx),
            self.define_from_variant("MPIX_CUDA", "cuda"),
            self.define_from_variant("MPIX_UCX", "ucx"),
            self.define_from_variant("MPIX_VERBS", "verbs"),
            self.define_from_variant("MPIX_PNG", "png"),
            self.define_from_variant("MPIX_SCOTCH", "scotch"),
            self.define_from_variant("MPIX_FORTRAN", "fortran"),
        ]
        if self.spec.satisfies("+fortran"):
            args.append(self.define("MPI_Fortran_COMPILER", self.spec["mpi"].mpifc))
        if self.spec.satisfies("+cuda"):
            args.append(self.define("CMAKE_CUDA_ARCHITECTURES", self.spec.variants["cuda_arch"].value))
        return args

    def test_mpix_info(self):
        """mpix_info tells for which MPI library it was built"""
        printed = Executable(self.prefix.bin.mpix_info)(output=str.split, error=str.split)
        assert "built for" in printed, printed
