// Orders from the host to units of PEs, as kernbench_builtin/components/launch_fan_out.py, host.py, io_cpu.py and
// m_cpu.py have them; the host's copies, too.
#pragma once
#include "memory.hpp"
#include <map>

struct Range {
    int64_t start, end;
};

// A step of a fan-out: the ways to the next nodes, and what they fan out to. `reach_ns` is the rehearsal's.
struct Tree {
    std::vector<const Path *> ways;
    std::vector<Tree> below;
    double reach_ns = 0;
    int64_t pe = -1;
};

// A launch, or an update of page tables.
struct Order {
    bool launch = false, unmap = false;
    int64_t nbytes = 0, number = 0;
    std::vector<Range> ranges;
    double target_start_ns = -1;
    Tree tree;
};

struct FanOut;
struct FanOutMsg : Msg {
    Order *order;
    const Tree *tree;
    FanOut *from;
    int64_t group;
    FanOutMsg(Order *order, const Tree *tree, const Path *path, FanOut *from, int64_t group)
        : Msg(FAN_OUT), order(order), tree(tree), from(from), group(group) {
        nbytes = order->nbytes;
        this->path = path;
    }
    void answered() override;
};

struct Piece {
    const Path *path;
    int64_t total, ranges;
    std::vector<Share> shares;
};

struct Host;
// What the host asks for: a copy, or an order.
struct Request : Msg {
    Order *order = nullptr;
    bool write = false;
    std::vector<Piece> pieces;
    int64_t waiting = 0;
    double completed_ns = -1;
    Request() : Msg(REQUEST) {}
};

struct FanOut : Component {
    struct Group {
        Msg *parent;
        int64_t waiting;
    };
    std::vector<Group> groups;

    virtual bool stamps(const Tree &) const { return false; }
    virtual void gathered(Msg *parent) {
        parent->service += now() - parent->tail;
        parent->turn_around();
        send(parent);
    }
    virtual void act(Msg *msg) {
        if (msg->kind == FAN_OUT && !msg->reply && msg->at_end_of_path()) {
            auto order = static_cast<FanOutMsg *>(msg);
            fan_out(order, order->order, *order->tree);
        } else {
            send(msg);
        }
    }
    static void acting(void *unit, void *msg) { static_cast<FanOut *>(unit)->act(static_cast<Msg *>(msg)); }
    void arrive(Msg *msg) override { serve_overhead(msg, overhead_ns); }
    void emit(Msg *msg, double head, double tail) override {
        msg->head = head;
        msg->tail = tail;
        if (tail > now()) clock->appoint(tail, &acting, this, msg);
        else act(msg);
    }
    void send(Msg *msg) { forward(msg, now(), now()); }
    void fan_out(Msg *parent, Order *order, const Tree &tree) {
        if (order->launch && stamps(tree) && order->target_start_ns < 0) order->target_start_ns = now() + tree.reach_ns;
        auto group = static_cast<int64_t>(groups.size());
        groups.push_back({parent, static_cast<int64_t>(tree.ways.size())});
        for (size_t at = 0; at < tree.ways.size(); ++at) {
            auto child = new FanOutMsg(order, &tree.below[at], tree.ways[at], this, group);
            child->born = child->head = child->tail = now();
            send(child);
        }
    }
    void child_answered(int64_t group) {
        if (!--groups[group].waiting) gathered(groups[group].parent);
    }
};
inline void FanOutMsg::answered() { from->child_answered(group); }

struct IoCpu : FanOut {
    bool stamps(const Tree &) const override { return true; }
};
struct MCpu : FanOut {};

struct Host : FanOut {
    // The host program: requests that it submits (from 0 on), and those that it waits for (-1, -2 …).
    std::vector<int64_t> program;
    std::vector<Request *> requests;
    size_t at = 0;
    Request *waits_for = nullptr;

    bool stamps(const Tree &tree) const override { return tree.ways.size() > 1; }
    void arrive(Msg *msg) override {
        if (msg->reply) take_answer(msg);
        else serve_overhead(msg, overhead_ns);
    }
    void act(Msg *msg) override {
        auto request = static_cast<Request *>(msg);
        if (request->order) {
            fan_out(request, request->order, request->order->tree);
            return;
        }
        request->waiting = static_cast<int64_t>(request->pieces.size());
        if (!request->waiting) complete(request);
        for (auto &piece : request->pieces) {
            auto sent = new Transaction(request->write, piece.total, piece.ranges, piece.path, &copied, request);
            sent->shares = &piece.shares;
            sent->born = now();
            send(sent);
        }
    }
    static void copied(void *owner, void *) {
        auto request = static_cast<Request *>(owner);
        auto host = static_cast<Host *>(request->path->nodes[0]);
        if (!--request->waiting) host->complete(request);
    }
    void gathered(Msg *parent) override { complete(static_cast<Request *>(parent)); }
    void complete(Request *request) {
        request->completed_ns = now();
        if (waits_for == request) {
            waits_for = nullptr;
            go_on();
        }
    }
    static void arriving(void *host, void *msg) { static_cast<Host *>(host)->arrive(static_cast<Msg *>(msg)); }
    static void over(void *host, void *) { static_cast<Host *>(host)->clock->halted = true; }
    void go_on() {
        while (at < program.size()) {
            int64_t step = program[at];
            if (step >= 0) {
                auto request = requests[step];
                request->head = request->tail = request->born = now();
                clock->appoint(now(), &arriving, this, request);
            } else if (requests[-1 - step]->completed_ns < 0) {
                waits_for = requests[-1 - step];
                ++at;
                return;
            }
            ++at;
        }
        clock->after(0, &over, this, nullptr);  // the end of the program's process
    }
    static void starting(void *host, void *) { static_cast<Host *>(host)->go_on(); }
};
