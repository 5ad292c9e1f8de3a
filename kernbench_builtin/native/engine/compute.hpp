// The matrix and the vector unit of a PE, as kernbench_builtin/components/matrix_unit.py and pe_math.py have them; how
// long a piece of work takes is worked out by these.
#pragma once
#include "commands.hpp"
#include <unordered_map>

struct VectorUnit : Workers {
    void started(Msg *msg, double time) override { note_start(msg, time); }
    void ended(Msg *msg, double time) override { note_end(msg, time); }
    static void over(void *, void *worker) {
        auto done = static_cast<Worker *>(worker);
        done->unit->end(done);
    }
    void begin(Worker *worker) override {
        Msg *msg = worker->msg;
        double took = msg->kind == TOKEN ? static_cast<Token *>(msg)->at().took : static_cast<Command *>(msg)->took;
        clock->after(took, &over, this, worker);
    }
};

struct MatrixUnit : Component {
    struct Array {
        bool open = true, one_fold = false;
        double entered = -INF, ends = -INF, free = -INF, loadable = -INF;
        int64_t sum = 0;
        std::vector<std::pair<Msg *, double>> under_way;  // products, and when they began
    };
    struct Step {
        Array *array;
        Msg *msg;
    };
    double start_up_ns;
    bool overlaps;
    const std::vector<Times> *times;
    std::vector<Array> arrays;
    std::deque<Msg *> queue;
    std::unordered_map<int64_t, double> ends;  // of each command under way, by its key

    static const Command *command_of(Msg *msg) { return msg->kind == COMMAND ? static_cast<Command *>(msg) : nullptr; }
    static int64_t sum_after(Msg *msg);
    static int64_t sum_before(Msg *msg) {
        if (auto command = command_of(msg)) return command->sum_before;
        return static_cast<Token *>(msg)->tile->k_tile ? sum_after(msg) : 0;
    }
    static bool part_of_sum(Msg *msg) {
        if (msg->kind != TOKEN) return false;
        auto token = static_cast<Token *>(msg);
        return token->stage + 1 == static_cast<int>(token->tile->stages.size());
    }
    const Times &times_of(Msg *msg, bool on_sum) const {
        if (auto command = command_of(msg)) return (*times)[on_sum ? command->on_sum : command->value];
        return (*times)[static_cast<Token *>(msg)->at().value];
    }
    static bool leaves_sum(const Array &array, Msg *msg, double now) {
        int64_t before = sum_before(msg);
        return before && before == array.sum && (now <= array.entered || now < array.ends);
    }
    void arrive(Msg *msg) override {
        Array *chosen = nullptr;
        for (auto &array : arrays) {
            if (array.open && (!chosen || leaves_sum(array, msg, now()))) {
                chosen = &array;
                if (leaves_sum(array, msg, now())) break;
            }
        }
        if (chosen) turn_to(*chosen, msg);
        else queue.push_back(msg);
    }
    void turn_to(Array &array, Msg *msg) {
        double began = now();
        if (began > msg->tail) msg->queueing += began - msg->tail;
        note_start(msg, began);
        bool on_sum = leaves_sum(array, msg, began);
        const Times &took = times_of(msg, on_sum);
        array.open = false;
        double entry = entry_of(array, msg, took, on_sum);
        double entered = entry + took.into;
        bool alone = entry == msg->tail + start_up_ns + took.load;
        double over = alone ? msg->tail + took.alone : entry + took.through;
        double drained = std::max(over, entry + took.emptied);
        if (part_of_sum(msg)) over = entered;
        array.entered = entered;
        array.ends = over;
        array.one_fold = took.one_fold;
        array.free = overlaps ? entered : drained;
        array.loadable = overlaps ? entry + took.last_fold : drained;
        array.sum = sum_after(msg);
        array.under_way.push_back({msg, began});
        if (auto command = command_of(msg)) ends[command->key()] = over;
        if (over != entered) clock->appoint(over, CALLS(MatrixUnit::out), this, new Step{&array, msg});
        clock->appoint(entered, CALLS(MatrixUnit::in), this, new Step{&array, msg});
    }
    double entry_of(Array &array, Msg *msg, const Times &took, bool on_sum) {
        double ready = msg->tail + start_up_ns;
        if (!ends.empty() && !on_sum) {
            auto found = ends.find(sum_before(msg));
            ready = std::max(ready, found == ends.end() ? 0.0 : found->second);
        }
        if (!overlaps && joins(array, msg)) return std::max(array.entered, ready);
        if (!took.load) return std::max(array.free, ready);
        return std::max(array.free, std::max(array.loadable, ready) + took.load);  // no operand stays in the cells
    }
    bool joins(Array &array, Msg *msg) {
        const Times &took = times_of(msg, false);
        bool one_fold = took.one_fold && array.one_fold && !took.load;
        bool in_time = msg->tail + start_up_ns <= array.entered && array.entered == now();
        return one_fold && in_time && leaves_sum(array, msg, now());
    }
    void in(Step *step) {
        Array &array = *step->array;
        Msg *msg = step->msg;
        if (array.ends == array.entered) {
            leave(array, msg);
        } else if (msg->kind == TOKEN) {
            for (auto &product : array.under_way)
                if (product.first == msg) return taken_in(step);
        }
        go_on(step);
    }
    void taken_in(Step *step);
    void go_on(Step *step) {
        Array &array = *step->array;
        if (overlaps || (!queue.empty() && joins(array, queue.front()))) {
            delete step;
            next(array);
        } else {
            clock->appoint(array.free, CALLS(MatrixUnit::emptied), this, step);
        }
    }
    void out(Step *step) {
        leave(*step->array, step->msg);
        delete step;
    }
    void emptied(Step *step) {
        Array &array = *step->array;
        delete step;
        next(array);
    }
    void next(Array &array) {
        if (queue.empty()) {
            array.open = true;
            return;
        }
        Msg *msg = queue.front();
        queue.pop_front();
        turn_to(array, msg);
    }
    void leave(Array &array, Msg *msg) {
        double began = 0;
        for (auto at = array.under_way.begin(); at != array.under_way.end(); ++at) {
            if (at->first == msg) {
                began = at->second;
                array.under_way.erase(at);
                break;
            }
        }
        if (auto command = command_of(msg)) ends.erase(command->key());
        double service = now() - began;
        msg->service += service;
        note_end(msg, now());
        emit(msg, now(), msg->tail > now() - service ? msg->tail + service : now());
    }
};
