// Messages and wires, as kernbench_core/messages.py and kernbench_core/wire.py have them.
#pragma once
#include "events.hpp"

struct Component;
struct Wire;

// The nodes on a way, and the wire that leads to each but the first; `back` is the way back.
struct Path {
    std::vector<Component *> nodes;
    std::vector<Wire *> wires;
    const Path *back = nullptr;
};

enum Kind { COMMAND, TRANSACTION, CHUNK, FAN_OUT, REQUEST, TOKEN, PUSH, FETCH, PUSH_CHUNK, ARRIVED, CREDIT };

// `MsgBase`. What is allocated for a run is given back at its end.
struct Msg {
    Kind kind;
    int64_t nbytes = 0;
    const Path *path = nullptr;
    int hop = 0;
    bool reply = false;
    double head = 0, tail = 0, born = 0;
    double propagation = 0, serialisation = 0, overhead = 0, queueing = 0, service = 0;

    explicit Msg(Kind kind) : kind(kind) {}
    virtual ~Msg() = default;
    bool at_end_of_path() const { return hop + 1 >= static_cast<int>(path->nodes.size()); }
    virtual void turn_around() {
        path = path->back;
        hop = 0;
        reply = true;
        nbytes = 0;
    }
    virtual void at_end(Component *component, double head, double tail);
    virtual void answered() {}
};

enum HeadRule { ON_TAIL, ON_HEAD, AS_MEMORY, AS_DMA };

struct Waits {
    int64_t waits = 0;
    double waited_ns = 0, longest_wait_ns = 0;
    void note_wait(double waited) {
        ++waits;
        waited_ns += waited;
        if (waited > longest_wait_ns) longest_wait_ns = waited;
    }
};

struct Wire : Waits {
    Clock *clock;
    Component *receiver;
    Callback arrive;
    int64_t key;
    double bandwidth, latency;
    int64_t header_bytes, payload_bytes;
    HeadRule rule;
    double available_at = 0, busy_ns = 0;
    int64_t bytes_carried = 0;
    int64_t last_nbytes = -1;
    double last_took = 0;

    double duration(int64_t nbytes) {
        if (nbytes == last_nbytes) return last_took;
        int64_t units = payload_bytes ? (nbytes + payload_bytes - 1) / payload_bytes : 0;
        int64_t on_wire = nbytes + (units > 1 ? units : 1) * header_bytes;
        last_nbytes = nbytes;
        return last_took = grid_ceil(static_cast<double>(on_wire) / bandwidth);
    }
    // Occupy the wire; give when the first and the last byte are out.
    std::pair<double, double> book(int64_t nbytes, double head, double tail) {
        double took = duration(nbytes);
        double start = available_at < head ? head : available_at;
        double end = start + took;
        if (end < tail) end = tail;
        available_at = end;
        busy_ns += took;
        bytes_carried += nbytes;
        return {start + latency, end + latency};
    }
    void deliver(Msg *msg, double time) { clock->push(time, DELIVERY, ++key, arrive, receiver, msg); }
    void charge(Msg *msg, double own, double stretch) {
        double waited = stretch;
        if (own > 0.0) {
            msg->serialisation += own;
            waited -= own;
        }
        if (waited != 0.0) {
            msg->queueing += waited;
            note_wait(waited);
        }
    }
    bool acts_on_head(Msg *msg) const;
    void send(Msg *msg, double head, double tail) {
        double took = duration(msg->nbytes);
        double start = available_at, end;
        if (start <= head) {
            start = head;
            end = start + took;
            if (end > tail) msg->serialisation += end - tail;
            else end = tail;
        } else {
            end = start + took;
            if (end < tail) end = tail;
            charge(msg, took - (tail - head), end - tail);
        }
        available_at = end;
        busy_ns += took;
        bytes_carried += msg->nbytes;
        msg->propagation += latency;
        msg->head = start + latency;
        msg->tail = end + latency;
        deliver(msg, acts_on_head(msg) ? msg->head : msg->tail);
    }
};
