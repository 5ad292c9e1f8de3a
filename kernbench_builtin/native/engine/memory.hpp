// Memories, as kernbench_builtin/components/channelled_memory.py has them: hbm_ctrl.py, sram.py and pe_tcm.py.
#pragma once
#include "component.hpp"

struct Share {
    int64_t channel, nbytes;
};

// `Transaction`: bytes to or from a memory. `done(owner, this)` is called when the answer is back.
struct Transaction : Msg {
    bool write;
    int64_t total;
    const std::vector<Share> *shares = nullptr;  // none: by direction, as a scratchpad has them
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
        nbytes = write ? 0 : total;
    }
    void answered() override { done(owner, this); }
};

struct Memory : Component {
    std::vector<Wire *> channels;

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
