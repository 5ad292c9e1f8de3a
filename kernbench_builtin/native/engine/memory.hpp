// Memories, as kernbench_builtin/components/channelled_memory.py has them: hbm_ctrl.py, sram.py and pe_tcm.py; with the
// atomic units of atomic_units.py.
#pragma once
#include "component.hpp"
#include <algorithm>

struct Share {
    int64_t channel, nbytes;
};
// A read-modify-write that brings nothing back: the bytes of its operands, those of addresses that it sends more than a
// write would, and its bursts in order of address.
struct Atomic {
    struct Burst {
        int64_t channel, steps, number;
    };
    int64_t sent, more;
    std::vector<Burst> bursts;
};

// `Transaction`: bytes to or from a memory. `done(owner, this)` is called when the answer is back.
struct Transaction : Msg {
    bool write;
    int64_t total;
    const std::vector<Share> *shares = nullptr;  // none: by direction, as a scratchpad has them
    const Atomic *atomic = nullptr;
    std::vector<Share> fetched;  // of an atomic op: what was not in its units yet
    Callback done = nullptr;
    void *owner = nullptr;

    Transaction(bool write, int64_t total, int64_t ranges, const Path *path, Callback done, void *owner)
        : Msg(TRANSACTION), write(write), total(total), done(done), owner(owner) {
        int64_t addresses = ranges ? 8 * (ranges - 1) : 0;
        nbytes = write ? total + addresses : addresses;
        this->path = path;
    }
    void turn_around() override {
        path = path->back;
        hop = 0;
        reply = true;
        nbytes = write || atomic ? 0 : total;
    }
    void answered() override { done(owner, this); }
};

struct Memory : Component {
    std::vector<Wire *> channels;
    int64_t burst_bytes = 0;              // of its atomic units
    double step_ns = 0;
    std::vector<double> unit_free;        // by channel
    std::vector<double> *held = nullptr;  // by burst until when a unit has it

    void arrive(Msg *msg) override { serve_overhead(msg, overhead_ns); }
    void on_internal(Msg *msg) override {
        auto request = static_cast<Transaction *>(msg);
        double tail = request->tail, head = request->write ? tail : request->head;
        request->turn_around();
        forward(request, head, tail);
    }
    static void internal(void *memory, void *msg) { static_cast<Memory *>(memory)->on_internal(static_cast<Msg *>(msg)); }
    void emit(Msg *msg, double head, double tail) override {
        auto request = static_cast<Transaction *>(msg);
        if (request->atomic) {
            change(request, tail);
            return;
        }
        Share own{request->write ? 1 : 0, request->total};
        const Share *share = request->shares ? request->shares->data() : &own;
        size_t number = request->shares ? request->shares->size() : (request->total ? 1 : 0);
        if (!number) {
            request->head = request->tail = tail;
            clock->appoint(tail, &internal, this, request);
            return;
        }
        Wire *first = channels[share->channel], *last = first;
        double first_head = INF, last_tail = -INF;
        int64_t last_bytes = 0;
        for (size_t at = 0; at < number; ++at, ++share) {
            Wire *wire = channels[share->channel];
            auto [head_out, tail_out] = wire->book(share->nbytes, head, tail);
            if (head_out < first_head) first = wire, first_head = head_out;
            if (tail_out > last_tail) last = wire, last_tail = tail_out, last_bytes = share->nbytes;
        }
        request->propagation += last->latency;
        last->charge(request, last->duration(last_bytes) - (tail - head), last_tail - last->latency - tail);
        request->head = first_head;
        request->tail = last_tail;
        if (request->write) last->deliver(request, last_tail);
        else first->deliver(request, first_head);
    }
    // `_change`, with `AtomicUnits.take`, `serve` and `charge`.
    void change(Transaction *request, double at) {
        struct Turn {
            int64_t channel, steps, bursts;
            double ready;
        };
        std::vector<Turn> turns;  // by channel, in order of address
        for (const auto &burst : request->atomic->bursts) {
            auto turn = std::find_if(turns.begin(), turns.end(), [&](const Turn &t) { return t.channel == burst.channel; });
            if (turn == turns.end()) turn = turns.insert(turn, {burst.channel, 0, 0, at});
            turn->steps += burst.steps;
            turn->bursts += (*held)[burst.number] <= at;
        }
        for (const auto &turn : turns)
            if (turn.bursts) request->fetched.push_back({turn.channel, turn.bursts * burst_bytes});
        std::sort(request->fetched.begin(), request->fetched.end(),
                  [](const Share &one, const Share &other) { return one.channel < other.channel; });
        for (const auto &share : request->fetched) {
            double ready = channels[share.channel]->book(share.nbytes, at, at).second;
            for (auto &turn : turns)
                if (turn.channel == share.channel) turn.ready = ready;
        }
        const Turn *last = nullptr;
        double began = 0, end = -INF;
        for (const auto &turn : turns) {
            double start = std::max(turn.ready, unit_free[turn.channel]);
            unit_free[turn.channel] = start + static_cast<double>(turn.steps) * step_ns;
            if (unit_free[turn.channel] > end) last = &turn, began = start, end = unit_free[turn.channel];
        }
        if (last->bursts) {
            Wire *wire = channels[last->channel];
            request->propagation += wire->latency;
            wire->charge(request, wire->duration(last->bursts * burst_bytes), last->ready - wire->latency - at);
        }
        request->service += end - began;
        if (began > last->ready) request->queueing += began - last->ready;
        for (const auto &burst : request->atomic->bursts) (*held)[burst.number] = end;
        request->head = request->tail = end;
        clock->appoint(end, &changed, this, request);
    }
    static void changed(void *memory, void *msg) {
        auto self = static_cast<Memory *>(memory);
        auto request = static_cast<Transaction *>(msg);
        double now = self->now();
        for (const auto &share : request->fetched) self->channels[share.channel]->book(share.nbytes, now, now);
        request->turn_around();
        self->forward(request, now, now);
    }
    // `PeTcm.book_access`.
    std::pair<double, double> book_access(bool write, int64_t nbytes, double head, double tail) {
        return channels[write ? 1 : 0]->book(nbytes, head + overhead_ns, tail + overhead_ns);
    }
};

inline bool Wire::acts_on_head(Msg *msg) const {
    switch (rule) {
        case ON_TAIL: return false;
        case ON_HEAD: return true;
        case AS_MEMORY: return static_cast<Transaction *>(msg)->write && !msg->reply;
        default: return !msg->at_end_of_path();
    }
}
