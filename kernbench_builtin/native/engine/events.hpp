// The queue of events, as kernbench_core/events/queue.py and kernbench_core/environment.py have it.
#pragma once
#include <cmath>
#include <cstdint>
#include <limits>
#include <queue>
#include <vector>

constexpr double GRID_PER_NS = 65536.0;
constexpr double INF = std::numeric_limits<double>::infinity();

// A duration in ns, rounded up to the grid, as kernbench_core/units.py does it.
inline double grid_ceil(double ns) { return std::ceil(ns * GRID_PER_NS) / GRID_PER_NS; }

// At one instant deliveries come first, then what begins, then everything else; of one sort by key.
enum Priority { DELIVERY = -1, URGENT = 0, NORMAL = 1 };

using Callback = void (*)(void *receiver, void *subject);

struct Event {
    double time;
    int64_t key;
    int priority;
    Callback callback;
    void *receiver, *subject;
    bool operator<(const Event &other) const {  // as the priority queue has the greatest first
        if (time != other.time) return time > other.time;
        if (priority != other.priority) return priority > other.priority;
        return key > other.key;
    }
};

// Why a run ends before the host's program does.
enum Fault { NO_FAULT, FULL_SCRATCHPAD, UNCLEAR_ORDER, OTHER_ROOM };

struct Clock {
    Fault fault = NO_FAULT;
    double now = 0.0;
    int64_t injected = 0, scheduled = 0, happened = 0;
    bool halted = false;
    std::priority_queue<Event> queue;

    void push(double time, int priority, int64_t key, Callback callback, void *receiver, void *subject) {
        queue.push({time, key, priority, callback, receiver, subject});
    }
    // As `appoint` and `call_at`: a delivery over no edge.
    void appoint(double time, Callback callback, void *receiver, void *subject) {
        push(time, DELIVERY, ++injected, callback, receiver, subject);
    }
    // As `timeout` of a delay on the grid.
    void after(double delay, Callback callback, void *receiver, void *subject) {
        push(now + delay, NORMAL, scheduled++, callback, receiver, subject);
    }
    void fail(Fault why) {
        fault = why;
        halted = true;
    }
    // Have up to `most` events happen; whether any are left.
    bool advance(int64_t most) {
        while (most-- > 0 && !halted && !queue.empty()) {
            Event event = queue.top();
            queue.pop();
            now = event.time;
            ++happened;
            event.callback(event.receiver, event.subject);
        }
        return !halted && !queue.empty();
    }
};

// A method as a callback.
template <auto METHOD> struct Bound;
template <class R, class S, void (R::*METHOD)(S *)> struct Bound<METHOD> {
    static void call(void *receiver, void *subject) {
        (static_cast<R *>(receiver)->*METHOD)(static_cast<S *>(subject));
    }
};
#define CALLS(method) (&Bound<&method>::call)
