// SPDX-License-Identifier: BSD-3-Clause
#include "tests/tool_information/performance_variables.hpp"

#include <vector>

#include "tests/tool_information/control_variables.hpp"
#include "tests/tool_information/names.hpp"

namespace tool_information {
namespace {

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

}  // namespace

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

}  // namespace tool_information
