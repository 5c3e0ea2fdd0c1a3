// SPDX-License-Identifier: BSD-3-Clause
//
// The control and performance variables of mpix, as a tool sees them: before MPI_Init, while messages go to and fro, and,
// where the MPI library can, after MPI_Finalize. Run on two ranks; the arguments are the variables of the environment that mpix knows.
// TOLD_ON_RANK=<n>: that rank sets MPIX_REPORT=1, and no other.
#include <mpi.h>
#include <mpix/mpix.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace {

int rank_in_world = -1;

[[noreturn]] void fail(int line, const char *what) {
    std::fprintf(stderr, "FAILED variables.cpp:%d, world rank %d: %s\n", line, rank_in_world, what);
    std::fflush(stderr);
    int up = 0;
    MPI_Initialized(&up);
    if (up) MPI_Abort(MPI_COMM_WORLD, 1);
    std::exit(1);
}
#define CHECK(condition) ((condition) ? void() : fail(__LINE__, #condition))
#define OK(call) CHECK((call) == MPI_SUCCESS)

using number = unsigned long long;

// ---- names ------------------------------------------------------------------------------------------------------------

constexpr int room = 1024;
struct name_buffer {
    char text[room] = "";
    int length = room;
};

// Not all libraries take null for what is not asked for.
struct rest_of_info {
    int verbosity, var_class, bind, scope, readonly, continuous, atomic, controls, counters, categories;
    MPI_Datatype type;
    MPI_T_enum names;
    name_buffer meaning;
};

std::string control_name(int index, decltype(&MPI_T_cvar_get_info) get_info = MPI_T_cvar_get_info) {
    name_buffer name;
    rest_of_info r;
    return get_info(index, name.text, &name.length, &r.verbosity, &r.type, &r.names, r.meaning.text, &r.meaning.length,
                    &r.bind, &r.scope) == MPI_SUCCESS
               ? name.text
               : "";
}
std::string counter_name(int index, decltype(&MPI_T_pvar_get_info) get_info = MPI_T_pvar_get_info) {
    name_buffer name;
    rest_of_info r;
    return get_info(index, name.text, &name.length, &r.verbosity, &r.var_class, &r.type, &r.names, r.meaning.text,
                    &r.meaning.length, &r.bind, &r.readonly, &r.continuous, &r.atomic) == MPI_SUCCESS
               ? name.text
               : "";
}
std::string category_name(int index, decltype(&MPI_T_category_get_info) get_info = MPI_T_category_get_info) {
    name_buffer name;
    rest_of_info r;
    return get_info(index, name.text, &name.length, r.meaning.text, &r.meaning.length, &r.controls, &r.counters,
                    &r.categories) == MPI_SUCCESS
               ? name.text
               : "";
}

template <class NameOf, class Get>
std::multiset<std::string> names(int n, const NameOf &name_of, const Get &get_info) {
    std::multiset<std::string> all;
    for (int i = 0; i < n; ++i) all.insert(name_of(i, get_info));
    return all;
}

bool is_ours(const std::string &name) { return name.rfind("mpix_", 0) == 0; }

// Where each of ours is; and that all others are the library's, none is missing, and none there twice.
template <class NameOf, class Get>
std::map<std::string, int> ours_beside_library(int all, int of_library, const NameOf &name_of, const Get &get,
                                               const Get &get_of_library) {
    std::map<std::string, int> ours;
    std::multiset<std::string> theirs;
    for (int i = 0; i < all; ++i) {
        const std::string name = name_of(i, get);
        if (is_ours(name))
            CHECK(ours.emplace(name, i).second);
        else
            theirs.insert(name);
    }
    CHECK(theirs == names(of_library, name_of, get_of_library));
    CHECK(all == of_library + static_cast<int>(ours.size()));
    CHECK(name_of(all, get).empty() && name_of(-1, get).empty());
    return ours;
}

std::map<std::string, int> our_controls() {
    int all = 0, of_library = 0;
    OK(MPI_T_cvar_get_num(&all));
    OK(PMPI_T_cvar_get_num(&of_library));
    return ours_beside_library(all, of_library, control_name, MPI_T_cvar_get_info, PMPI_T_cvar_get_info);
}
std::map<std::string, int> our_counters() {
    int all = 0, of_library = 0;
    OK(MPI_T_pvar_get_num(&all));
    OK(PMPI_T_pvar_get_num(&of_library));
    return ours_beside_library(all, of_library, counter_name, MPI_T_pvar_get_info, PMPI_T_pvar_get_info);
}

std::string name_of_knob(std::string variable) {
    std::transform(variable.begin(), variable.end(), variable.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return variable;
}

// ---- categories --------------------------------------------------------------------------------------------------------

template <class Get, class NameOf>
std::multiset<std::string> members(int category, int n, const Get &get, const NameOf &name_of) {
    std::vector<int> indices(static_cast<std::size_t>(n) + 1, -7);
    OK(get(category, n, indices.data()));
    CHECK(indices.back() == -7);
    std::multiset<std::string> all;
    for (int i = 0; i < n; ++i) all.insert(name_of(indices[static_cast<std::size_t>(i)]));
    return all;
}

void check_categories(const std::map<std::string, int> &controls, const std::map<std::string, int> &counters) {
    int all = 0, of_library = 0, ours = -1;
    OK(MPI_T_category_get_num(&all));
    OK(PMPI_T_category_get_num(&of_library));
    CHECK(all == of_library + 1);
    OK(MPI_T_category_get_index("mpix", &ours));
    for (int i = 0; i < all; ++i) {
        int n_controls = 0, n_counters = 0, n_categories = 0;
        name_buffer name, meaning;
        const int code = MPI_T_category_get_info(i, name.text, &name.length, meaning.text, &meaning.length, &n_controls,
                                                 &n_counters, &n_categories);
        if (code != MPI_SUCCESS) {  // one of the library's may have gone
            CHECK(i != ours && category_name(i < ours ? i : i - 1, PMPI_T_category_get_info).empty());
            continue;
        }
        const auto held = members(i, n_controls, MPI_T_category_get_cvars, [](int v) { return control_name(v); });
        const auto counted = members(i, n_counters, MPI_T_category_get_pvars, [](int v) { return counter_name(v); });
        const auto below =
            members(i, n_categories, MPI_T_category_get_categories, [](int v) { return category_name(v); });
        if (i == ours) {
            CHECK(std::string(name.text) == "mpix" && n_categories == 0);
            CHECK(held.size() == controls.size() && counted.size() == counters.size());
            for (const auto &[one, index] : controls) CHECK(held.count(one) == 1);
            for (const auto &[one, index] : counters) CHECK(counted.count(one) == 1);
            // Fewer than there are.
            int few[2] = {-7, -7};
            OK(MPI_T_category_get_cvars(i, 1, few));
            CHECK(is_ours(control_name(few[0])) && few[1] == -7);
            continue;
        }
        int theirs = -1, index = -1;
        OK(PMPI_T_category_get_index(name.text, &theirs));
        OK(MPI_T_category_get_index(name.text, &index));
        CHECK(index == i || category_name(index) == name.text);  // some library has two of a name
        CHECK(held == members(theirs, n_controls, PMPI_T_category_get_cvars,
                              [](int v) { return control_name(v, PMPI_T_cvar_get_info); }));
        CHECK(counted == members(theirs, n_counters, PMPI_T_category_get_pvars,
                                 [](int v) { return counter_name(v, PMPI_T_pvar_get_info); }));
        CHECK(below == members(theirs, n_categories, PMPI_T_category_get_categories,
                               [](int v) { return category_name(v, PMPI_T_category_get_info); }));
    }
    CHECK(category_name(all).empty());
#if MPI_VERSION >= 4
    int events = -1;
    OK(MPI_T_category_get_num_events(ours, &events));
    CHECK(events == 0);
#endif
}

// ---- control variables -------------------------------------------------------------------------------------------------

class control {
public:
    explicit control(const char *name) {
        int index = -1;
        OK(MPI_T_cvar_get_index(name, &index));
        OK(MPI_T_cvar_get_info(index, nullptr, nullptr, nullptr, &type, &names, nullptr, nullptr, &bound, &scope));
        OK(MPI_T_cvar_handle_alloc(index, nullptr, &handle, &elements));
        CHECK(bound == MPI_T_BIND_NO_OBJECT);
    }
    ~control() {
        OK(MPI_T_cvar_handle_free(&handle));
        CHECK(handle == MPI_T_CVAR_HANDLE_NULL);
    }
    control(const control &) = delete;
    control &operator=(const control &) = delete;

    template <class Value>
    Value read() const {
        Value value{};
        OK(MPI_T_cvar_read(handle, &value));
        return value;
    }
    std::string read_text() const {
        std::vector<char> text(static_cast<std::size_t>(elements), 'x');
        OK(MPI_T_cvar_read(handle, text.data()));
        return text.data();
    }
    template <class Value>
    int write(Value value) const {
        return MPI_T_cvar_write(handle, &value);
    }
    int write_text(std::string text) const {
        text.resize(static_cast<std::size_t>(elements));
        return MPI_T_cvar_write(handle, text.data());
    }

    MPI_T_cvar_handle handle{};
    MPI_Datatype type{};
    MPI_T_enum names{};
    int bound = 0, scope = 0, elements = 0;
};

void check_text_lengths(int index) {
    int needed = 0, room_of_three = 3;
    OK(MPI_T_cvar_get_info(index, nullptr, &needed, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr));
    const std::string whole = control_name(index);
    CHECK(needed == static_cast<int>(whole.size()) + 1);
    char cut[4] = "zzz";
    OK(MPI_T_cvar_get_info(index, cut, &room_of_three, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr));
    CHECK(std::string(cut) == whole.substr(0, 2) && room_of_three == needed && cut[3] == '\0');
    name_buffer meaning;
    meaning.length = 0;
    OK(MPI_T_cvar_get_info(index, nullptr, nullptr, nullptr, nullptr, nullptr, meaning.text, &meaning.length, nullptr,
                           nullptr));
    CHECK(meaning.length > 20 && meaning.text[0] == '\0');
}

void check_enumeration() {
    const control progress("mpix_progress");
    CHECK(progress.type == MPI_INT && progress.elements == 1);
    int n = 0;
    name_buffer name;
    OK(MPI_T_enum_get_info(progress.names, &n, name.text, &name.length));
    CHECK(n == 3 && std::string(name.text) == "mpix_progress");
    const char *const expected[] = {"auto", "always", "never"};
    for (int i = 0; i < n; ++i) {
        name_buffer item;
        int value = -1;
        OK(MPI_T_enum_get_item(progress.names, i, &value, item.text, &item.length));
        CHECK(std::string(item.text) == expected[i] && value == i);
    }
    CHECK(MPI_T_enum_get_item(progress.names, n, nullptr, nullptr, nullptr) != MPI_SUCCESS);
    CHECK(progress.read<int>() == 0);
    OK(progress.write(2));
    CHECK(progress.read<int>() == 2);
    CHECK(progress.write(3) == MPI_T_ERR_INVALID && progress.write(-1) == MPI_T_ERR_INVALID);
    CHECK(progress.read<int>() == 2);
    OK(progress.write(0));
}

struct expected_knobs {
    number eager;
    MPI_Count in_line;
    double stall;
    std::string transports;
};

// What a tool may do before MPI_Init. The environment has MPIX_LANDING_BYTES=12345 and MPIX_EAGER_BYTES=17.
expected_knobs set_knobs(std::mt19937_64 &random) {
    const control eager("mpix_eager_bytes"), landing("mpix_landing_bytes"), in_line("mpix_inline_bytes"),
        stall("mpix_stall_seconds"), transports("mpix_transports"), check("mpix_check"),
        loading("mpix_cuda_eager_loading"), cpus("mpix_progress_cpus");
    CHECK(landing.read<number>() == 12345 && eager.read<number>() == 17);
    CHECK(eager.type == MPI_UNSIGNED_LONG_LONG && stall.type == MPI_DOUBLE && transports.type == MPI_CHAR);
    CHECK(in_line.type == MPI_COUNT && in_line.read<MPI_Count>() == -1);
    CHECK(transports.scope == MPI_T_SCOPE_ALL_EQ && eager.scope == MPI_T_SCOPE_LOCAL);
    const expected_knobs set{1000000 + random() % 1000000, static_cast<MPI_Count>(random() % 8192),
                             static_cast<double>(random() % 256) / 1024 + 0.25, transports.read_text()};
    OK(eager.write(set.eager));
    CHECK(eager.read<number>() == set.eager);
    OK(in_line.write(MPI_Count{7}));
    OK(in_line.write(MPI_Count{-1}));
    CHECK(in_line.read<MPI_Count>() == -1);
    OK(in_line.write(set.in_line));
    CHECK(in_line.write(MPI_Count{-2}) == MPI_T_ERR_INVALID);
    OK(stall.write(set.stall));
    CHECK(stall.write(-1.0) == MPI_T_ERR_INVALID);
    CHECK(stall.read<double>() == set.stall);
    CHECK(check.write(2) == MPI_T_ERR_INVALID && check.read<int>() == 0);
    CHECK(loading.scope == MPI_T_SCOPE_CONSTANT && loading.write(1) == MPI_T_ERR_CVAR_SET_NEVER);
    CHECK(transports.write_text("shm,carrier_pigeons") == MPI_T_ERR_INVALID);
    CHECK(transports.read_text() == set.transports);
    OK(transports.write_text("shm"));
    CHECK(transports.read_text() == "shm");
    OK(transports.write_text(set.transports));
    CHECK(cpus.write_text("3-") == MPI_T_ERR_INVALID && cpus.read_text().empty());
    std::vector<char> endless(static_cast<std::size_t>(cpus.elements), '1');
    CHECK(MPI_T_cvar_write(cpus.handle, endless.data()) == MPI_T_ERR_INVALID);
    return set;
}

void check_after_init(const expected_knobs &set) {
    const control eager("mpix_eager_bytes"), in_line("mpix_inline_bytes"), stall("mpix_stall_seconds"),
        landing("mpix_landing_bytes"), loading("mpix_cuda_eager_loading");
    CHECK(eager.read<number>() == set.eager && in_line.read<MPI_Count>() == set.in_line);
    CHECK(stall.read<double>() == set.stall && landing.read<number>() == 12345);
    CHECK(stall.write(1.0) == MPI_T_ERR_CVAR_SET_NOT_NOW && stall.read<double>() == set.stall);
    CHECK(in_line.write(MPI_Count{1}) == MPI_T_ERR_CVAR_SET_NOT_NOW);
    CHECK(loading.write(1) == MPI_T_ERR_CVAR_SET_NEVER);
}

// ---- performance variables ---------------------------------------------------------------------------------------------

class counters_of_session {
public:
    explicit counters_of_session(const std::map<std::string, int> &all) {
        OK(MPI_T_pvar_session_create(&session));
        for (const auto &[name, index] : all) {
            int count = 0;
            OK(MPI_T_pvar_handle_alloc(session, index, nullptr, &handles[name], &count));
            CHECK(count == 1);
        }
    }
    number operator[](const std::string &name) const {
        number value = 0;
        OK(MPI_T_pvar_read(session, handles.at(name), &value));
        return value;
    }
    double seconds() const {
        double value = -1;
        OK(MPI_T_pvar_read(session, handles.at("mpix_wait_time"), &value));
        return value;
    }
    MPI_T_pvar_session session{};
    std::map<std::string, MPI_T_pvar_handle> handles;
};

// A message with `mine` partitions here; the other rank cuts it into its own. Returns its bytes.
struct message {
    int send_partitions, receive_partitions;
    MPI_Count bytes;  // of all partitions
};

class transfers {
public:
    // Rank 0 sends, rank 1 receives.
    transfers(const message &m, int epochs, std::mt19937_64 &shared, bool deferred) : m_(m) {
        buffer_.resize(static_cast<std::size_t>(m.bytes));
        const bool sends = rank_in_world == 0;
        const int mine = sends ? m.send_partitions : m.receive_partitions;
        if (!sends && deferred) wait_for_token();
        if (sends)
            OK(MPI_Psend_init(buffer_.data(), mine, m.bytes / mine, MPI_BYTE, 1, 5, MPI_COMM_WORLD, MPI_INFO_NULL,
                              &request));
        else
            OK(MPI_Precv_init(buffer_.data(), mine, m.bytes / mine, MPI_BYTE, 0, 5, MPI_COMM_WORLD, MPI_INFO_NULL,
                              &request));
        for (int e = 0; e < epochs; ++e) {
            const std::uint64_t key = shared();
            fill(sends ? key : ~key);
            OK(MPI_Start(&request));
            if (sends) OK(MPI_Pready_range(0, mine - 1, request));
            if (sends && deferred && e == 0) give_token();
            OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
            if (!sends) check(key);
        }
    }
    MPI_Request request = MPI_REQUEST_NULL;

private:
    static void give_token() { OK(MPI_Send(nullptr, 0, MPI_BYTE, 1, 6, MPI_COMM_WORLD)); }
    static void wait_for_token() { OK(MPI_Recv(nullptr, 0, MPI_BYTE, 0, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE)); }
    void fill(std::uint64_t key) {
        std::mt19937_64 bytes(key);
        for (char &c : buffer_) c = static_cast<char>(bytes());
    }
    void check(std::uint64_t key) const {
        std::mt19937_64 bytes(key);
        for (const char c : buffer_) CHECK(c == static_cast<char>(bytes()));
    }
    message m_;
    std::vector<char> buffer_;
};

// A receive without a send waits until its deadline.
void stall() {
    char byte = 0;
    MPI_Request request = MPI_REQUEST_NULL;
    OK(MPI_Precv_init(&byte, 1, 1, MPI_BYTE, 1 - rank_in_world, 99, MPI_COMM_WORLD, MPI_INFO_NULL, &request));
    OK(MPI_Start(&request));
    CHECK(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_ERR_PENDING);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    // The send that was missing.
    MPI_Request send = MPI_REQUEST_NULL;
    char sent = 42;
    OK(MPI_Psend_init(&sent, 1, 1, MPI_BYTE, 1 - rank_in_world, 99, MPI_COMM_WORLD, MPI_INFO_NULL, &send));
    OK(MPI_Start(&send));
    OK(MPI_Pready(0, send));
    for (MPI_Request *one : {&request, &send}) {
        int code = MPI_ERR_PENDING;
        while (code == MPI_ERR_PENDING) code = MPI_Wait(one, MPI_STATUS_IGNORE);
        OK(code);
        OK(MPI_Request_free(one));
    }
    CHECK(byte == 42);
}

// Of six partitions that are ready before the receiver has started the epoch.
number deferred_in_second_epoch(const counters_of_session &counters) {
    char bytes[48] = "";
    MPI_Request request = MPI_REQUEST_NULL;
    const bool sends = rank_in_world == 0;
    if (sends)
        OK(MPI_Psend_init(bytes, 6, 8, MPI_BYTE, 1, 7, MPI_COMM_WORLD, MPI_INFO_NULL, &request));
    else
        OK(MPI_Precv_init(bytes, 6, 8, MPI_BYTE, 0, 7, MPI_COMM_WORLD, MPI_INFO_NULL, &request));
    OK(MPI_Start(&request));
    if (sends) OK(MPI_Pready_range(0, 5, request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    const number before = counters["mpix_shm_sent_deferred"];
    if (!sends) OK(MPI_Recv(nullptr, 0, MPI_BYTE, 0, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    OK(MPI_Start(&request));
    if (sends) {
        OK(MPI_Pready_range(0, 5, request));
        OK(MPI_Send(nullptr, 0, MPI_BYTE, 1, 8, MPI_COMM_WORLD));
    }
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Request_free(&request));
    return counters["mpix_shm_sent_deferred"] - before;
}

// What is written after MPI_Init has an effect on requests that are made from then on: room for one epoch, or for two.
void check_later_change(const std::map<std::string, int> &all) {
    const counters_of_session counters(all);
    const control eager("mpix_eager_bytes");
    CHECK(deferred_in_second_epoch(counters) == 0);
    OK(eager.write(number{0}));
    CHECK(eager.read<number>() == 0);
    CHECK(deferred_in_second_epoch(counters) == (rank_in_world == 0 ? 6 : 0));
    OK(eager.write(number{1000000}));
    CHECK(deferred_in_second_epoch(counters) == 0);
}

void check_counter_errors(const counters_of_session &a, const counters_of_session &b) {
    number value = 0;
    const MPI_T_pvar_handle waits = a.handles.at("mpix_waits"), level = a.handles.at("mpix_requests"),
                            timer = a.handles.at("mpix_wait_time");
    CHECK(MPI_T_pvar_start(a.session, waits) == MPI_T_ERR_PVAR_NO_STARTSTOP);
    CHECK(MPI_T_pvar_stop(a.session, waits) == MPI_T_ERR_PVAR_NO_STARTSTOP);
    CHECK(MPI_T_pvar_write(a.session, level, &value) == MPI_T_ERR_PVAR_NO_WRITE);
    CHECK(MPI_T_pvar_reset(a.session, level) == MPI_T_ERR_PVAR_NO_WRITE);
    CHECK(MPI_T_pvar_readreset(a.session, level, &value) == MPI_T_ERR_PVAR_NO_ATOMIC);
    CHECK(MPI_T_pvar_read(b.session, waits, &value) == MPI_T_ERR_INVALID_HANDLE);
    CHECK(MPI_T_pvar_read(MPI_T_PVAR_SESSION_NULL, waits, &value) == MPI_T_ERR_INVALID_SESSION);
    const double negative = -1;
    CHECK(MPI_T_pvar_write(a.session, timer, &negative) == MPI_T_ERR_INVALID);
    int index = -1, count = 0;
    MPI_T_pvar_handle none = MPI_T_PVAR_HANDLE_NULL;
    CHECK(MPI_T_pvar_get_index("mpix_waits", MPI_T_PVAR_CLASS_LEVEL, &index) == MPI_T_ERR_INVALID_NAME);
    OK(MPI_T_pvar_get_index("mpix_waits", MPI_T_PVAR_CLASS_COUNTER, &index));
    CHECK(counter_name(index) == "mpix_waits");
    CHECK(MPI_T_pvar_handle_alloc(MPI_T_PVAR_SESSION_NULL, index, nullptr, &none, &count) == MPI_T_ERR_INVALID_SESSION);
    CHECK(none == MPI_T_PVAR_HANDLE_NULL);
}

void check_counters(const std::map<std::string, int> &all, const std::string &path, std::mt19937_64 &shared) {
    counters_of_session a(all);
    const std::string sent = "mpix_" + path + "_sent_", received = "mpix_" + path + "_received_";
    for (const auto &[name, index] : all)
        if (name != "mpix_wait_time") CHECK(a[name] == 0);
    // Ready before the receiver has made its request: the engine moves all of it.
    const int epochs = 2 + static_cast<int>(shared() % 5), part = 1 + static_cast<int>(shared() % 3000);
    const message m{6, 4, 12 * part};
    transfers first(m, 1, shared, true), second(m, epochs, shared, false);
    const number n = static_cast<number>(epochs) + 1;
    const bool sends = rank_in_world == 0;
    const auto check_sums = [&](const counters_of_session &c, number messages) {
        const number bytes = messages * static_cast<number>(m.bytes);
        CHECK(c[sent + "messages"] == (sends ? messages : 0) && c[received + "messages"] == (sends ? 0 : messages));
        CHECK(c[sent + "bytes"] == (sends ? bytes : 0) && c[received + "bytes"] == (sends ? 0 : bytes));
        CHECK(c[sent + "partitions"] == (sends ? 6 * messages : 0));
        CHECK(c[received + "partitions"] == (sends ? 0 : 4 * messages));
        for (const auto &[name, index] : all)
            if (name.find("_bytes") != std::string::npos && name.rfind("mpix_" + path, 0) != 0) CHECK(c[name] == 0);
    };
    check_sums(a, n);
    if (sends) CHECK(a[sent + "deferred"] >= 6 && a[sent + "deferred"] <= 6 * n);
    if (!sends) CHECK(a[sent + "deferred"] == 0);
    CHECK(a["mpix_requests"] == 2);
    // Freed requests stay counted.
    OK(MPI_Request_free(&first.request));
    OK(MPI_Request_free(&second.request));
    check_sums(a, n);
    CHECK(a["mpix_requests"] == 0);
    // A handle counts from its allocation on, whatever others do.
    counters_of_session b(all);
    for (const auto &[name, index] : all)
        if (name != "mpix_wait_time") CHECK(b[name] == 0);
    number value = 0;
    const std::string mine = (sends ? sent : received) + "partitions";
    const number before = a[mine];
    OK(MPI_T_pvar_readreset(a.session, a.handles[mine], &value));
    CHECK(value == before && a[mine] == 0);
    value = 1000;
    OK(MPI_T_pvar_write(a.session, a.handles[mine], &value));
    transfers third(m, 2, shared, false);
    CHECK(a[mine] == 1000 + number{2} * (sends ? 6 : 4) && b[mine] == number{2} * (sends ? 6 : 4));
    OK(MPI_T_pvar_reset(a.session, a.handles[mine]));
    CHECK(a[mine] == 0 && b[mine] != 0);
    OK(MPI_Request_free(&third.request));

    // Waits: their time counts only while it is asked for.
    OK(MPI_Barrier(MPI_COMM_WORLD));
    const number waits = a["mpix_waits"];
    stall();
    CHECK(a["mpix_waits"] > waits && a["mpix_notices"] >= 1 && a["mpix_stalls"] >= 1);
    CHECK(a.seconds() == 0);
    OK(MPI_T_pvar_start(a.session, MPI_T_PVAR_ALL_HANDLES));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    stall();
    double least = 0;
    const control limit("mpix_stall_seconds");
    OK(MPI_T_cvar_read(limit.handle, &least));
    const double took = a.seconds();
    CHECK(took >= least && b.seconds() == 0);
    OK(MPI_T_pvar_stop(a.session, a.handles["mpix_wait_time"]));
    const double until_stopped = a.seconds();
    OK(MPI_T_pvar_start(b.session, b.handles["mpix_wait_time"]));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    stall();
    CHECK(a.seconds() == until_stopped && b.seconds() >= least);
    check_counter_errors(a, b);
    OK(MPI_T_pvar_handle_free(b.session, &b.handles["mpix_waits"]));
    CHECK(b.handles["mpix_waits"] == MPI_T_PVAR_HANDLE_NULL);
    OK(MPI_T_pvar_session_free(&a.session));
    OK(MPI_T_pvar_session_free(&b.session));
}

}  // namespace

int main(int argc, char **argv) {
    // Which rank this will be, as the launchers of Open MPI and MPICH say.
    const char *told = std::getenv("TOLD_ON_RANK"), *mine = std::getenv("OMPI_COMM_WORLD_RANK");
    if (mine == nullptr) mine = std::getenv("PMI_RANK");
    if (told != nullptr && mine != nullptr && std::strcmp(told, mine) == 0) setenv("MPIX_REPORT", "1", 1);

    int n = 0, level = 0;
    CHECK(MPI_T_cvar_get_num(&n) == MPI_T_ERR_NOT_INITIALIZED);
    OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &level));
    const std::map<std::string, int> controls = our_controls(), counters = our_counters();
    CHECK(static_cast<int>(controls.size()) == argc - 1);
    for (int i = 1; i < argc; ++i) {
        int index = -1;
        OK(MPI_T_cvar_get_index(name_of_knob(argv[i]).c_str(), &index));
        CHECK(controls.at(name_of_knob(argv[i])) == index);
    }
    CHECK(MPI_T_cvar_get_index("mpix_colour", &n) != MPI_SUCCESS);
    check_text_lengths(controls.at("mpix_eager_bytes"));
    check_enumeration();
    check_categories(controls, counters);
    std::mt19937_64 random(std::random_device{}());
    const expected_knobs set = set_knobs(random);

    OK(MPI_Init(nullptr, nullptr));
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_in_world);
    // The library may have more now; ours are where they were.
    CHECK(our_controls() == controls && our_counters() == counters);
    check_categories(controls, counters);
    check_after_init(set);
    std::uint64_t seed = random();
    OK(MPI_Bcast(&seed, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD));
    if (rank_in_world == 0) std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
    std::mt19937_64 shared(seed);
    check_counters(counters, set.transports.empty() ? "shm" : set.transports, shared);
    if (set.transports.empty()) check_later_change(counters);
        // Open MPI 4.1 crashes, by itself, in an MPI_T_finalize that comes after MPI_Finalize.
#ifdef OPEN_MPI
    OK(MPI_T_finalize());
    OK(MPI_Finalize());
#else
    OK(MPI_Finalize());
    CHECK(control("mpix_stall_seconds").read<double>() == set.stall);
    OK(MPI_T_finalize());
#endif
    CHECK(MPI_T_cvar_get_num(&n) == MPI_T_ERR_NOT_INITIALIZED);
    std::printf("world rank %d: all as it should be\n", rank_in_world);
    return 0;
}
