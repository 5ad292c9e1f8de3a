// The processor of a PE, as kernbench_builtin/components/pe_cpu.py and kernbench_core/kernel/serving.py, runner.py and
// held.py have it; a kernel is the stream of what it asked for.
#pragma once
#include "commands.hpp"
#include "fan_out.hpp"
#include "queues.hpp"

enum Ask { ISSUE, ISSUE_BLOCKING, WAIT, END, BORN, LENT, DROPPED, FREED, ROOM };

// A block of the scratchpad, or a slot of a queue that a receipt got.
struct Block {
    int64_t address = -1, users = 0;
    bool dropped = false;
    Command *receipt = nullptr;
};

struct PeCpu : Workers {
    double dispatch_ns, element_read_ns;
    const std::vector<Command *> *commands;
    std::vector<const std::vector<int64_t> *> launches;  // by launch, what its programs on this PE ask for
    std::vector<std::pair<double, double>> launched;  // start and end of each launch here

    Scratchpad room;
    std::vector<Block> blocks;
    Queues *queues = nullptr;

    Worker *worker = nullptr;
    const std::vector<int64_t> *asks = nullptr;
    size_t at = 0;        // the ask that is being answered
    size_t seen = 0;      // of those that are waited for
    enum Stage { TAKE_UP, NOW, GO_ON };
    std::deque<Command *> held[5];

    void begin(Worker *hired) override {
        worker = hired;
        auto order = static_cast<FanOutMsg *>(hired->msg)->order;
        if (order->target_start_ns > now()) clock->after(order->target_start_ns - now(), CALLS(PeCpu::run), this, order);
        else run(order);
    }
    void run(Order *order) {
        launched[order->number].first = now();
        asks = launches[order->number];
        at = 0;
        program();
    }
    void program() {
        if (at == asks->size()) {
            launched[static_cast<FanOutMsg *>(worker->msg)->order->number].second = now();
            end(worker);
        } else {
            serve(TAKE_UP);
        }
    }
    // An ask is: what, elements read before it, how many commands, these.
    int64_t field(size_t number) const { return (*asks)[at + number]; }
    Command *command(size_t number) const { return (*commands)[field(3 + number)]; }
    void pass() {
        at += 3 + static_cast<size_t>(field(2));
        seen = 0;
    }
    static void ticked(void *cpu, void *) { static_cast<PeCpu *>(cpu)->serve(NOW); }
    static void woken(void *cpu, void *) { static_cast<PeCpu *>(cpu)->serve(GO_ON); }
    static void paid(void *cpu, void *) { static_cast<PeCpu *>(cpu)->ending(); }
    void serve(Stage stage) {
        while (true) {
            int64_t what = field(0);
            if (what >= BORN) {
                block(what, field(1), field(3));
                if (clock->halted) return;
                pass();
                if (at >= asks->size()) return program();  // given back after the last program
                continue;
            }
            double unpaid = static_cast<double>(field(1)) * element_read_ns;
            if (what == END) {
                if (stage == GO_ON) break;
                if (field(1) && element_read_ns != 0.0) {
                    clock->after(unpaid, &paid, this, nullptr);
                    return;
                }
                break;
            }
            if (what != WAIT && stage != GO_ON) {
                if (stage == TAKE_UP && (dispatch_ns != 0.0 || (field(1) && element_read_ns != 0.0))) {
                    clock->after(dispatch_ns + unpaid, &ticked, this, nullptr);
                    return;
                }
                issue(command(0));
                if (what == ISSUE) {
                    pass();
                    stage = TAKE_UP;
                    continue;
                }
            }
            if (!all_complete()) return;
            pass();
            stage = TAKE_UP;
        }
        ending();
    }
    void ending() {
        if (!all_complete()) return;
        pass();
        program();
    }
    bool all_complete() {
        while (seen < static_cast<size_t>(field(2))) {
            Command *waited = command(seen++);
            if (!waited->complete) {
                waited->waiters.push_back({&woken, this, nullptr});
                return false;
            }
        }
        return true;
    }
    void block(int64_t what, int64_t argument, int64_t number) {
        if (what == ROOM) {  // the program found at least `argument` bytes, and fewer than `number`
            int64_t hole = room.largest_hole();
            if (hole < argument || (number >= 0 && hole >= number)) clock->fail(OTHER_ROOM);
            return;
        }
        if (number >= static_cast<int64_t>(blocks.size())) blocks.resize(static_cast<size_t>(number) + 1);
        Block &block = blocks[number];
        if (what == BORN) {
            block.address = room.alloc(argument);
            if (block.address < 0) clock->fail(FULL_SCRATCHPAD);
        } else if (what == LENT) {
            block.receipt = (*commands)[argument];
        } else {
            block.dropped = true;
            if (what == DROPPED && argument && !block.users) clock->fail(UNCLEAR_ORDER);
            if (what == FREED || !block.users) release(block);
        }
    }
    void release(Block &block) {
        if (block.receipt) {
            queues->given_back(block.receipt);
            block.receipt = nullptr;
        } else if (block.address >= 0) {
            room.free(block.address);
            block.address = -1;
        }
    }
    void over(Command *command) {
        for (int64_t number : command->holds) --blocks[number].users;
        for (auto number = command->holds.rbegin(); number != command->holds.rend(); ++number) {  // as tuples let go
            Block &block = blocks[*number];
            if (!block.users && block.dropped) release(block);
        }
    }
    void issue(Command *issued) {
        for (int64_t number : issued->holds) ++blocks[number].users;
        auto &queue = held[issued->unit];
        if ((issued->unit == DMA_UNIT && !issued->write) || (queue.empty() && (!issued->needs || issued->needs->complete))) {
            send(issued);
            return;
        }
        queue.push_back(issued);
        if (queue.size() == 1) await(issued->unit);
    }
    void await(Unit unit) {
        auto &queue = held[unit];
        while (!queue.empty()) {
            Command *first = queue.front();
            if (first->needs && !first->needs->complete) {
                first->needs->waiters.push_back({CALLS(PeCpu::made), this, &held[unit]});
                return;
            }
            queue.pop_front();
            send(first);
        }
    }
    void made(std::deque<Command *> *queue) { await(static_cast<Unit>(queue - held)); }
    void send(Command *issued) {
        issued->born = issued->head = issued->tail = now();
        forward(issued, now(), now());
    }
};

inline void Command::answered() {
    complete = true;
    cpu->over(this);
    auto told = std::move(waiters);
    waiters.clear();
    for (auto &waiter : told) waiter.callback(waiter.receiver, waiter.subject);
}
