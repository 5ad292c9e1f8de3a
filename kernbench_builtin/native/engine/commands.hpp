// What units of a PE are asked to do, and what notes when they did: kernbench_core/kernel/commands.py, tiles/token.py
// and queues/messages.py of kernbench_builtin/components.
#pragma once
#include "memory.hpp"

struct PeCpu;
struct Stream;
struct Incoming;
enum Unit { DMA_UNIT, GEMM_UNIT, MATH_UNIT, SCHEDULER_UNIT, QUEUES_UNIT };

// `_Times` of matrix_unit.py.
struct Times {
    bool one_fold;
    double load, last_fold, streams, own, unfilled, into, through, emptied, alone;
};

struct Stage {
    enum Type { DMA_READ, FETCH, GEMM, MATH, STORE, DMA_WRITE } type;
    Component *unit;
    int64_t value;  // the transfer, the bytes, or the number of the product's times
    double took;    // of a math op
};
struct Tile {
    std::vector<Stage> stages;
    int64_t m_tile, n_tile, k_tile, staged_bytes, operand_bytes, sum_bytes, last_use;
};

struct Command : Msg {
    PeCpu *cpu = nullptr;
    int64_t pe = 0, number = 0;
    Unit unit = DMA_UNIT;
    bool write = false;
    Atomic atomic{-1, 0, {}};  // one that sends nothing is none
    int64_t value = -1;      // the transfer, or the product's times; of a message its bytes
    int64_t on_sum = -1;     // the product's times where its sum is in the array
    int64_t sum_before = 0;  // 0: none
    double took = 0;
    int64_t queue = -1;  // of a message
    bool sends = false, lends = false;
    int64_t slot = -1;           // that a receipt got
    std::vector<int64_t> holds;  // blocks of the scratchpad
    std::vector<Tile> tiles;
    Command *needs = nullptr;
    bool complete = false;
    double started_ns = -1, ended_ns = -1;
    struct Waiter {
        Callback callback;
        void *receiver, *subject;
    };
    std::vector<Waiter> waiters;

    Command() : Msg(COMMAND) {}
    int64_t key() const { return (pe << 40) + number + 1; }
    void answered() override;
};

// `TileToken`.
struct Token : Msg {
    const Tile *tile;
    Stream *stream;
    int64_t index;
    int stage = 0;
    struct FetchStore *registers = nullptr;
    std::vector<double> times;  // start and end of each stage

    Token(const Tile *tile, Stream *stream, int64_t index)
        : Msg(TOKEN), tile(tile), stream(stream), index(index), times(2 * tile->stages.size(), -1) {}
    const Stage &at() const { return tile->stages[stage]; }
    void at_end(Component *component, double head, double tail) override;
    void go_on(Component *component, double head, double tail);
    void hop_to(const Component *destination, Component *component, double head, double tail) {
        path = component->hops.at(destination);
        hop = 1;
        path->wires[1]->send(this, head, tail);
    }
    void queue_at(Component *component, Callback arrive, double head, double tail) {
        path = &component->here;
        hop = 0;
        this->head = std::max(component->now(), grid_ceil(head));
        this->tail = tail;
        component->clock->appoint(this->head, arrive, component, this);
    }
    void answered() override;
    void turn_around() override {}
};

struct Progress {
    Command *command;
    int64_t total, begun = 0, moved = 0;
    double began = 0;
};
struct Push : Msg {
    Progress *progress;
    Command *send;
    int64_t queue, number, total, offset, metadata_bytes, transfer;
    const Path *route;
    int64_t sent = 0, landed = 0;
    double came = -1, ends = 0;
    Push(Progress *progress, int64_t queue, int64_t number, int64_t total, int64_t metadata_bytes, int64_t transfer,
         const Path *path, const Path *route)
        : Msg(PUSH), progress(progress), send(progress->command), queue(queue), number(number), total(total),
          offset(progress->begun), metadata_bytes(metadata_bytes), transfer(transfer), route(route) {
        nbytes = 32;
        this->path = path;
    }
    bool last() const;
};
struct Fetch : Msg {
    Push *push;
    Progress *progress;
    Fetch(Push *push, Progress *progress, const Path *path) : Msg(FETCH), push(push), progress(progress) {
        nbytes = 32;
        this->path = path;
    }
};
struct PushChunk : Msg {
    Push *push;
    int64_t total;
    PushChunk(Push *push, int64_t nbytes, int64_t extra) : Msg(PUSH_CHUNK), push(push), total(nbytes) {
        this->nbytes = nbytes + extra;
        path = push->route;
    }
};
struct Arrived : Msg {
    Push *push;
    Arrived(Push *push, const Path *path) : Msg(ARRIVED), push(push) { this->path = path; }
};
struct Credit : Msg {
    int64_t queue, given_back;
    Credit(int64_t queue, int64_t nbytes, int64_t given_back, const Path *path)
        : Msg(CREDIT), queue(queue), given_back(given_back) {
        this->nbytes = nbytes;
        this->path = path;
    }
};
inline bool Push::last() const { return offset + total == send->value; }

// The transfer that a DMA is asked for, and its direction.
inline int64_t transfer_of(Msg *msg) {
    switch (msg->kind) {
        case TOKEN: return static_cast<Token *>(msg)->at().value;
        case PUSH: return static_cast<Push *>(msg)->transfer;
        case FETCH: return static_cast<Fetch *>(msg)->push->transfer;
        default: return static_cast<Command *>(msg)->value;
    }
}
inline bool writes_memory(Msg *msg) {
    switch (msg->kind) {
        case TOKEN: return static_cast<Token *>(msg)->at().type == Stage::DMA_WRITE;
        case PUSH: return true;
        case FETCH: return false;
        default: return static_cast<Command *>(msg)->write;
    }
}
inline const Atomic *atomic_of(Msg *msg) {
    auto command = msg->kind == COMMAND ? static_cast<Command *>(msg) : nullptr;
    return command && command->atomic.sent >= 0 ? &command->atomic : nullptr;
}
// What the op log notes.
inline void note_start(Msg *msg, double time) {
    if (msg->kind == COMMAND) static_cast<Command *>(msg)->started_ns = time;
    else if (msg->kind == TOKEN) static_cast<Token *>(msg)->times[2 * static_cast<Token *>(msg)->stage] = time;
}
inline void note_end(Msg *msg, double time) {
    if (msg->kind == COMMAND) static_cast<Command *>(msg)->ended_ns = time;
    else if (msg->kind == TOKEN) static_cast<Token *>(msg)->times[2 * static_cast<Token *>(msg)->stage + 1] = time;
}
