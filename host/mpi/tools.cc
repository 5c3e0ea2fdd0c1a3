// SPDX-License-Identifier: BSD-3-Clause
#include "host/mpi/tools.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include <cstdint>
#include <cstring>
#include <string_view>

#include "host/format.h"

namespace mpix {

next_functions next;

namespace {

// Calls that mpix must see. Without those of the tool information interface, a program only does not find our variables.
bool must_be_seen(std::string_view name) { return name.substr(0, 6) != "MPI_T_"; }

constexpr const char *interposed[] = {
#define MPIX_PASSED_ON(name) "MPI_" #name,
#define MPIX_OWN(name) "MPI_" #name,
#include "host/mpi/interposed.def"
#undef MPIX_PASSED_ON
#undef MPIX_OWN
};

// The shared object (a library or the program) that contains the address; null if none does.
const link_map *object_of(const void *address) {
    Dl_info info;
    void *map = nullptr;
    if (address == nullptr || dladdr1(address, &info, &map, RTLD_DL_LINKMAP) == 0) return nullptr;
    return static_cast<const link_map *>(map);
}

const link_map *our_object() { return object_of(&next); }

bool is_program(const link_map *object) { return object->l_prev == nullptr; }

// A non-PIE program that takes a function's address has a PLT stub of that name, which dlsym finds too. It calls the
// next definition.
bool is_stub(const void *function) {
    Dl_info info;
    void *symbol = nullptr;
    return dladdr1(function, &info, &symbol, RTLD_DL_SYMENT) != 0 && symbol != nullptr &&
           static_cast<const ElfW(Sym) *>(symbol)->st_shndx == SHN_UNDEF;
}

// Whether the object imports the PMPI_ name of a function that mpix interposes.
bool calls_library(const link_map *object) {
    const ElfW(Sym) *symbols = nullptr;
    const char *names = nullptr;
    const std::uint32_t *hash = nullptr;
    for (const ElfW(Dyn) *entry = object->l_ld; entry->d_tag != DT_NULL; ++entry) {
        if (entry->d_tag == DT_SYMTAB) symbols = reinterpret_cast<const ElfW(Sym) *>(entry->d_un.d_ptr);
        if (entry->d_tag == DT_STRTAB) names = reinterpret_cast<const char *>(entry->d_un.d_ptr);
        if (entry->d_tag == DT_GNU_HASH) hash = reinterpret_cast<const std::uint32_t *>(entry->d_un.d_ptr);
    }
    if (symbols == nullptr || names == nullptr || hash == nullptr) return true;  // unknown
    const std::uint32_t first_defined = hash[1];                                 // imports come before
    for (std::uint32_t i = 1; i < first_defined; ++i) {
        const char *const name = names + symbols[i].st_name;
        if (*name != 'P') continue;
        for (const char *const ours : interposed)
            if (std::strcmp(name + 1, ours) == 0 && must_be_seen(ours)) return true;
    }
    return false;
}

// The object whose definition the program's calls find in place of ours; null if they find ours.
const link_map *in_front_of(const char *name) {
    const link_map *const ours = our_object();
    // Where mpix is a part of the program (mpix_info), nothing comes before it.
    if (ours == nullptr || is_program(ours)) return nullptr;
    void *const found = dlsym(RTLD_DEFAULT, name);
    const link_map *const object = object_of(found);
    return object == nullptr || object == ours || is_stub(found) ? nullptr : object;
}

std::string remedy(const link_map *object) {
    if (is_program(object)) return "link what defines it as a shared library behind mpix";
    return format("put {} first in LD_PRELOAD: a library behind mpix still sees the program's calls",
                  our_object()->l_name);
}

std::string name_of(const link_map *object) { return is_program(object) ? "the program itself" : object->l_name; }

// The next definition, if it is a tool's: not the MPI library's, which is called as PMPI_, nor that of a second mpix,
// built into the program.
void *tool_function(const char *name, const char *library_name) {
    void *const found = dlsym(RTLD_NEXT, name);
    const link_map *const object = object_of(found);
    if (object == nullptr || object == object_of(dlsym(RTLD_NEXT, library_name)) ||
        object == object_of(dlsym(RTLD_NEXT, "MPIX_Prequest_create")))
        return nullptr;
    return found;
}

}  // namespace

void find_tools() {
#define MPIX_PASSED_ON(name)                                           \
    if (void *const tool = tool_function("MPI_" #name, "PMPI_" #name)) \
        next.name = reinterpret_cast<decltype(next.name)>(tool);
#define MPIX_OWN(name)
#include "host/mpi/interposed.def"
#undef MPIX_PASSED_ON
#undef MPIX_OWN
}

bool tool_wants_init() { return next.Init != PMPI_Init && next.Init_thread == PMPI_Init_thread; }

status tool_in_front(const char *init) {
    // A library that has passed this call on to us, and calls no PMPI_ function, passes the others on too.
    const link_map *passes_on = in_front_of(init), *first = nullptr;
    if (passes_on != nullptr && calls_library(passes_on)) passes_on = nullptr;
    std::string names;
    for (const std::string_view name : interposed) {
        // We have been called by one of these, so they are passed on.
        if (name == "MPI_Init" || name == "MPI_Init_thread" || !must_be_seen(name)) continue;
        const link_map *const object = in_front_of(name.data());
        if (object == nullptr || object == passes_on || (first != nullptr && object != first)) continue;
        names += first == nullptr ? std::string(name) : format(", {}", name);
        first = object;
    }
    if (first == nullptr) return {};
    return failure(format("{} comes before mpix, which would not see these calls of the program: {}; {}",
                          name_of(first), names, remedy(first)));
}

status init_unseen() {
    for (const char *const name : {"MPI_Init", "MPI_Init_thread"})
        if (const link_map *const object = in_front_of(name))
            return failure(format("mpix did not see {}: {} comes before mpix and has it; {}", name, name_of(object),
                                  remedy(object)));
    return failure(
        "mpix did not see MPI_Init: it was called as PMPI_Init, or not at all, but a session was opened; call it, and "
        "all "
        "others, by their names that begin with MPI_");
}

}  // namespace mpix
