// What every model does, as kernbench_core/component.py and kernbench_core/workers/worker.py have it.
#pragma once
#include "wire.hpp"
#include <deque>
#include <map>

struct Component {
    Clock *clock = nullptr;
    double overhead_ns = 0;
    double floor = -INF;  // no message leaves before
    std::map<const Component *, const Path *> hops;  // the ways to neighbours
    Path here;                                       // of a message that has come without a way

    virtual ~Component() = default;
    virtual void arrive(Msg *msg) = 0;
    virtual void on_internal(Msg *) {}
    virtual void emit(Msg *msg, double head, double tail) { forward(msg, head, tail); }
    double now() const { return clock->now; }

    // The base's `emit`: along the path, or at its end an answer.
    void forward(Msg *msg, double head, double tail) {
        if (!msg->at_end_of_path()) {
            ++msg->hop;
            msg->path->wires[msg->hop]->send(msg, head, tail);
            return;
        }
        msg->head = head;
        msg->tail = tail;
        if (msg->reply) take_answer(msg);
        else msg->at_end(this, head, tail);
    }
    static void answer(void *, void *msg) { static_cast<Msg *>(msg)->answered(); }
    void take_answer(Msg *msg) {
        if (msg->tail > now()) clock->appoint(msg->tail, &answer, this, msg);
        else msg->answered();
    }
    // `_arrive_overhead`, without what only pacing models need.
    void serve_overhead(Msg *msg, double overhead) {
        double out = now() + overhead;
        if (out >= floor) floor = out;
        else out = floor;
        double tail = msg->tail + overhead;
        msg->overhead += overhead;
        if (tail < out) {
            msg->queueing += out - tail;
            tail = out;
        }
        emit(msg, out, tail);
    }
};

inline void Msg::at_end(Component *component, double head, double tail) {
    turn_around();
    component->emit(this, head, tail);
}

// A model with `run`: workers on one queue. `begin` starts a service, which calls `end` when it is over.
struct Workers : Component {
    struct Worker {
        Msg *msg = nullptr;
        double start = 0, tail = 0;
        Workers *unit = nullptr;
    };
    std::vector<Worker> workers;
    std::vector<Worker *> idle;
    std::deque<Msg *> waiting;

    void hire(int64_t number) {
        workers.resize(static_cast<size_t>(number));
        for (auto &worker : workers) {
            worker.unit = this;
            idle.push_back(&worker);
        }
    }
    virtual void begin(Worker *worker) = 0;
    virtual void started(Msg *, double) {}  // what the op log notes
    virtual void ended(Msg *, double) {}
    void arrive(Msg *msg) override { arrive_run(msg); }
    void arrive_run(Msg *msg) {
        if (msg->reply && msg->at_end_of_path()) {
            take_answer(msg);
        } else if (!idle.empty()) {
            Worker *worker = idle.back();
            idle.pop_back();
            serve(worker, msg);
        } else {
            waiting.push_back(msg);
        }
    }
    void serve(Worker *worker, Msg *msg) {
        worker->msg = msg;
        worker->start = now();
        worker->tail = msg->tail;
        started(msg, worker->start);
        begin(worker);
    }
    void end(Worker *worker) {
        Msg *msg = worker->msg;
        double end = now(), service = end - worker->start;
        ended(msg, end);
        msg->service += service;
        double out = end;
        if (worker->tail > worker->start) out = worker->tail + service;
        else msg->queueing += worker->start - worker->tail;
        emit(msg, end, out);
        if (waiting.empty()) {
            idle.push_back(worker);
        } else {
            Msg *next = waiting.front();
            waiting.pop_front();
            serve(worker, next);
        }
    }
};

// Forwarding, kernbench_builtin/components/forwarding.py, and what is derived from it.
struct Forwarding : Component {
    void arrive(Msg *msg) override { serve_overhead(msg, overhead_ns); }
};
