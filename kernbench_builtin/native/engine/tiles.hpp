// Composites, as kernbench_builtin/components/pe_scheduler.py, pe_fetch_store.py and tiles/ have them.
#pragma once
#include "compute.hpp"
#include "memory.hpp"
#include <algorithm>
#include <map>
#include <set>

struct Scheduler;
struct Stream {
    Scheduler *home;
    Workers::Worker *worker;
    Command *command;
    int64_t number;
    size_t fed = 0;
    int64_t in_flight = 0, staged_bytes = 0;
    int summed = 0;
    bool waits = false;
    struct Gate {
        int64_t next = 0;
        std::map<int64_t, std::tuple<Token *, double, double>> held;
    };
    std::map<int, Gate> gates;
    std::vector<Token *> tokens;

    bool in_order(const Token *token) const {
        const auto &stages = token->tile->stages;
        auto type = token->at().type;
        if (type == Stage::DMA_READ) return stages[token->stage + 1].type == Stage::FETCH;
        return token->stage < summed && (type == Stage::GEMM || type == Stage::MATH);
    }
    void leave(Token *token, Component *component, double head, double tail) {
        Gate &gate = gates[token->stage];
        gate.held[token->index] = {token, head, tail};
        for (auto found = gate.held.find(gate.next); found != gate.held.end(); found = gate.held.find(gate.next)) {
            auto [ready, own_head, own_tail] = found->second;
            gate.held.erase(found);
            ++gate.next;
            head = std::max(own_head, head);
            tail = std::max(own_tail, head);
            if (tail > own_tail) ready->queueing += tail - own_tail;
            ready->go_on(component, head, tail);
        }
    }
};

struct Scheduler : Workers {
    int64_t tiles_in_flight, staging;
    int64_t streams = 0;

    void started(Msg *msg, double time) override { note_start(msg, time); }
    void ended(Msg *msg, double time) override { note_end(msg, time); }
    void begin(Worker *worker) override {
        auto command = static_cast<Command *>(worker->msg);
        auto stream = new Stream{this, worker, command, ++streams};
        if (overhead_ns != 0.0) clock->after(overhead_ns, CALLS(Scheduler::feed), this, stream);
        else feed(stream);
    }
    void feed(Stream *stream);
};

inline int64_t MatrixUnit::sum_after(Msg *msg) {
    if (auto command = command_of(msg)) return command->key();
    auto token = static_cast<Token *>(msg);
    if (token->stage != token->tile->last_use) return 0;
    return -((token->stream->number << 40) + (token->tile->m_tile << 20) + token->tile->n_tile) - 1;
}

struct FetchStore : Workers {
    using Output = std::tuple<Stream *, int64_t, int64_t>;
    int64_t capacity, used = 0;
    const Path *to_tcm;
    std::vector<Token *> asking;
    std::map<Output, int64_t> sums;
    std::set<Token *> held;

    static Output output_of(const Token *token) { return {token->stream, token->tile->m_tile, token->tile->n_tile}; }
    void arrive(Msg *msg) override {
        if (msg->kind != TOKEN || static_cast<Token *>(msg)->at().type != Stage::FETCH) {
            arrive_run(msg);
            return;
        }
        auto token = static_cast<Token *>(msg);
        token->registers = this;
        asking.push_back(token);
        for (auto fits : admit()) arrive_run(fits);
    }
    std::vector<Token *> admit() {
        std::vector<Token *> let_in, left;
        std::set<Stream *> blocked;
        for (auto token : asking) {
            int64_t begun = sums.count(output_of(token)) ? 0 : token->tile->sum_bytes;
            if (!blocked.count(token->stream) && used + token->tile->operand_bytes + begun <= capacity) {
                used += token->tile->operand_bytes;
                held.insert(token);
                if (sums.emplace(output_of(token), token->tile->sum_bytes).second) used += token->tile->sum_bytes;
                let_in.push_back(token);
            } else {
                blocked.insert(token->stream);
                left.push_back(token);
            }
        }
        asking = left;
        return let_in;
    }
    static void serving(void *unit, void *msg) { static_cast<FetchStore *>(unit)->arrive_run(static_cast<Msg *>(msg)); }
    void let_in() {
        for (auto token : admit()) token->queue_at(this, &serving, now(), token->tail);
    }
    bool took(Token *token) {
        if (!held.count(token) || token->stage != token->tile->last_use) return false;
        held.erase(token);
        used -= token->tile->operand_bytes;
        return true;
    }
    void taken_in(Token *token) {
        if (took(token)) let_in();
    }
    void stage_ended(Token *token) {
        bool freed = took(token);
        if (token->at().type == Stage::STORE) {
            auto sum = sums.find(output_of(token));
            used -= sum->second;
            sums.erase(sum);
            freed = true;
        }
        if (freed) let_in();
    }
    void started(Msg *msg, double time) override { note_start(msg, time); }
    void ended(Msg *msg, double time) override { note_end(msg, time); }
    void begin(Worker *worker) override {
        if (overhead_ns != 0.0) clock->after(overhead_ns, CALLS(FetchStore::move), this, worker);
        else move(worker);
    }
    static void moved(void *worker, void *request) {
        delete static_cast<Transaction *>(request);
        auto done = static_cast<Worker *>(worker);
        done->unit->end(done);
    }
    void move(Worker *worker) {
        const Stage &stage = static_cast<Token *>(worker->msg)->at();
        auto request = new Transaction(stage.type == Stage::STORE, stage.value, 0, to_tcm, &moved, worker);
        request->born = now();
        forward(request, now(), now());
    }
};

inline void MatrixUnit::taken_in(Step *step) {
    auto token = static_cast<Token *>(step->msg);
    if (token->registers) token->registers->taken_in(token);
    go_on(step);
}
inline void Token::at_end(Component *component, double head, double tail) {
    if (registers) registers->stage_ended(this);
    if (stream->in_order(this)) stream->leave(this, component, head, tail);
    else go_on(component, head, tail);
}
inline void Token::go_on(Component *component, double head, double tail) {
    struct Arrive {
        static void call(void *unit, void *msg) { static_cast<Component *>(unit)->arrive(static_cast<Msg *>(msg)); }
    };
    if (stage + 1 == static_cast<int>(tile->stages.size())) {
        reply = true;
        hop_to(stream->home, component, head, tail);
        return;
    }
    ++stage;
    if (at().unit == component) queue_at(component, &Arrive::call, head, tail);
    else hop_to(at().unit, component, head, tail);
}
inline void Token::answered() {
    --stream->in_flight;
    stream->staged_bytes -= tile->staged_bytes;
    if (stream->waits) {
        stream->waits = false;
        stream->home->feed(stream);
    }
}
inline void Scheduler::feed(Stream *stream) {
    const auto &tiles = stream->command->tiles;
    while (stream->fed < tiles.size()) {
        const Tile &tile = tiles[stream->fed];
        if (stream->staged_bytes + tile.staged_bytes > staging || stream->in_flight >= tiles_in_flight) {
            stream->waits = true;
            return;
        }
        if (!stream->fed) {
            bool stores = std::any_of(tile.stages.begin(), tile.stages.end(),
                                      [](const Stage &stage) { return stage.type == Stage::STORE; });
            stream->summed = stores ? 0 : static_cast<int>(tile.stages.size());
        }
        auto token = new Token(&tile, stream, static_cast<int64_t>(stream->fed++));
        stream->tokens.push_back(token);
        ++stream->in_flight;
        stream->staged_bytes += tile.staged_bytes;
        token->born = now();
        token->hop_to(token->at().unit, this, now(), now());
    }
    if (stream->in_flight) stream->waits = true;
    else end(stream->worker);
}
