// The queues between PEs, as kernbench_builtin/components/pe_ipcq.py and queues/ have them.
#pragma once
#include "commands.hpp"
#include <deque>
#include <map>
#include <set>

// The holes of a scratchpad, as kernbench_core/memory/allocator.py has them, which are filled from the first one on.
struct Scratchpad {
    static constexpr int64_t ALIGNMENT = 64;
    int64_t size = 0;
    std::map<int64_t, int64_t> holes, live;  // ends and bytes, by start
    void make(int64_t bytes) {
        size = bytes - bytes % ALIGNMENT;
        if (size) holes[0] = size;
    }
    int64_t alloc(int64_t nbytes) {
        if (nbytes > size) return -1;
        int64_t need = std::max(ALIGNMENT, (nbytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
        for (auto hole = holes.begin(); hole != holes.end(); ++hole) {
            auto [start, end] = *hole;
            if (end - start < need) continue;
            holes.erase(hole);
            if (end - start > need) holes[start + need] = end;
            live[start] = need;
            return start;
        }
        return -1;
    }
    int64_t largest_hole() const {
        int64_t found = 0;
        for (auto [start, end] : holes) found = std::max(found, end - start);
        return found;
    }
    void free(int64_t start) {
        int64_t end = start + live[start];
        live.erase(start);
        auto after = holes.find(end);
        if (after != holes.end()) {
            end = after->second;
            holes.erase(after);
        }
        auto before = holes.lower_bound(start);
        if (before != holes.begin() && std::prev(before)->second == start) std::prev(before)->second = end;
        else holes[start] = end;
    }
};

struct Queues;
// Both ends of a queue.
struct Queue {
    int64_t number, slots, slot_bytes;
    Scratchpad *room;    // that its slots are in
    Queues *receiver;
    bool made = false;
    const Path *route, *back;                // of payload, and of credits
    std::map<int64_t, int64_t> transfers;    // by bytes of a piece
    int64_t tail = 0, known_back = 0;        // the sender's
    std::deque<Progress *> waiting;
    std::deque<Push *> arrived;              // the receiver's
    std::map<int64_t, Push *> early;
    int64_t next = 0, given_back = 0;
    std::deque<Progress *> receipts;
    std::set<int64_t> free;
};

struct Queues : Component {
    int64_t metadata_bytes, credit_bytes;
    const Path *to_dma = nullptr;
    std::vector<Queue> *queues;
    double turn_over = 0;

    void arrive(Msg *msg) override {
        double start = std::max(turn_over, now()), out = turn_over = start + overhead_ns;
        switch (msg->kind) {
            case PUSH: return pushed(static_cast<Push *>(msg), out);
            case ARRIVED: return arrived(static_cast<Arrived *>(msg), out);
            case FETCH: return fetched(static_cast<Fetch *>(msg), out);
            case CREDIT: return credited(static_cast<Credit *>(msg), out);
            default: break;
        }
        auto command = static_cast<Command *>(msg);
        auto progress = new Progress{command, command->value};
        Queue &queue = (*queues)[command->queue];
        if (!queue.made && queue.room->alloc(queue.slots * queue.slot_bytes) < 0) clock->fail(FULL_SCRATCHPAD);
        queue.made = true;
        if (command->sends) {
            queue.waiting.push_back(progress);
            pump(queue, out);
        } else {
            begin(progress, out);
            queue.receipts.push_back(progress);
            match(queue, out);
        }
    }
    void send(Msg *msg, double out) {
        msg->born = now();
        msg->overhead = overhead_ns;
        msg->queueing = out - overhead_ns - msg->born;
        forward(msg, out, out);
    }
    void begin(Progress *progress, double out) {
        double start = progress->began = out - overhead_ns;
        progress->command->queueing += start - progress->command->tail;
        note_start(progress->command, start);
    }
    void finish(Progress *progress, double out) {
        Command *command = progress->command;
        command->service += out - progress->began;
        note_end(command, out);
        forward(command, out, out);
    }
    void pump(Queue &queue, double out) {
        while (!queue.waiting.empty() && queue.tail - queue.known_back < queue.slots) {
            Progress *progress = queue.waiting.front();
            if (!progress->begun) begin(progress, out);
            int64_t nbytes = std::min(queue.slot_bytes, progress->total - progress->begun);
            auto push = new Push(progress, queue.number, queue.tail++, nbytes, metadata_bytes, queue.transfers.at(nbytes),
                                 to_dma, queue.route);
            progress->begun += nbytes;
            if (progress->begun == progress->total) queue.waiting.pop_front();
            send(push, out);
        }
    }
    void pushed(Push *push, double out) {
        Progress *progress = push->progress;
        progress->moved += push->total;
        if (progress->moved == progress->total) finish(progress, out);
    }
    void credited(Credit *credit, double out) {
        Queue &queue = (*queues)[credit->queue];
        queue.known_back = credit->given_back;
        delete credit;
        pump(queue, out);
    }
    void arrived(Arrived *note, double out) {
        Push *push = note->push;
        Queue &queue = (*queues)[push->queue];
        delete note;
        queue.early[push->number] = push;
        for (auto found = queue.early.find(queue.next); found != queue.early.end(); found = queue.early.find(queue.next)) {
            queue.arrived.push_back(found->second);
            queue.early.erase(found);
            ++queue.next;
        }
        match(queue, out);
    }
    void match(Queue &queue, double out) {
        while (!queue.receipts.empty() && !queue.arrived.empty()) {
            Progress *progress = queue.receipts.front();
            Push *push = queue.arrived.front();
            queue.arrived.pop_front();
            bool last = push->last();
            if (!push->offset) {
                progress->command->queueing += out - overhead_ns - progress->began;
                progress->began = out - overhead_ns;
            }
            if (last) queue.receipts.pop_front();
            if (progress->command->lends) {
                progress->command->slot = push->number % queue.slots;
                finish(progress, out);
            } else if (!push->total) {
                give_back(queue, push->number % queue.slots, out);
                if (last) finish(progress, out);
            } else {
                progress->begun += push->total;
                send(new Fetch(push, progress, to_dma), out);
            }
        }
    }
    void fetched(Fetch *fetch, double out) {
        Push *push = fetch->push;
        Progress *progress = fetch->progress;
        delete fetch;
        give_back((*queues)[push->queue], push->number % (*queues)[push->queue].slots, out);
        progress->moved += push->total;
        if (progress->moved == progress->total) finish(progress, out);
    }
    void given_back(Command *receipt) {
        double start = std::max(turn_over, now()), out = turn_over = start + overhead_ns;
        give_back((*queues)[receipt->queue], receipt->slot, out);
    }
    void give_back(Queue &queue, int64_t index, double out) {
        if (index != queue.given_back % queue.slots) {
            queue.free.insert(index);
            return;
        }
        ++queue.given_back;
        while (queue.free.erase(queue.given_back % queue.slots)) ++queue.given_back;
        send(new Credit(queue.number, credit_bytes, queue.given_back, queue.back), out);
    }
};
