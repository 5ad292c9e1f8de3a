// The DMA of a PE, as kernbench_builtin/components/pe_dma.py and dma_jobs.py have it.
#pragma once
#include "commands.hpp"
#include "mmu.hpp"

struct Chunk {
    const Path *path;  // to the memory; none for a slot of a queue
    int64_t nbytes, ranges;
    std::vector<Share> shares;
    std::vector<PageUse> pages;
};
struct Transfer {
    std::vector<Chunk> chunks;
};

struct Dma;
struct Channel;
struct Job {
    Msg *msg;
    bool write;
    int64_t waiting;
    const Atomic *atomic = nullptr;
    bool pushes = false, fetches = false, translates = false, started = false;
    double began = 0, ready = 0, ends = 0;
};
struct ChunkMsg : Msg {
    Dma *dma;
    Job *job;
    Channel *channel;
    const Chunk *chunk;
    double taken = 0;
    ChunkMsg(Dma *dma, Job *job, Channel *channel, const Chunk *chunk, double now)
        : Msg(CHUNK), dma(dma), job(job), channel(channel), chunk(chunk) {
        head = tail = born = now;
    }
};
struct Channel {
    std::vector<double> free;  // a heap, the earliest on top
    std::deque<ChunkMsg *> queue;
};

struct Dma : Component {
    double descriptor_ns;
    Channel reads, writes;
    Mmu *mmu = nullptr;
    Memory *tcm = nullptr;
    Wire *to_tcm = nullptr, *from_tcm = nullptr;
    const std::vector<Transfer> *transfers;
    const Path *to_queues = nullptr;

    void arrive(Msg *msg) override {
        if (msg->kind == TRANSACTION || msg->kind == PUSH_CHUNK || msg->kind == CREDIT) {
            if (!msg->at_end_of_path()) forward(msg, now(), msg->tail);
            else if (msg->kind == PUSH_CHUNK) land(static_cast<PushChunk *>(msg));
            else take_answer(msg);
            return;
        }
        int64_t number = transfer_of(msg);
        bool write = writes_memory(msg), order = msg->kind == PUSH || msg->kind == FETCH;
        const auto &chunks = (*transfers)[number].chunks;
        auto job = new Job{msg, write, std::max<int64_t>(1, static_cast<int64_t>(chunks.size()))};
        job->atomic = atomic_of(msg);
        job->pushes = msg->kind == PUSH;
        job->fetches = tcm && (write || order);
        job->translates = mmu && !order;
        Channel &channel = write ? writes : reads;
        if (chunks.empty()) channel.queue.push_back(new ChunkMsg(this, job, &channel, nullptr, now()));
        for (const auto &chunk : chunks) channel.queue.push_back(new ChunkMsg(this, job, &channel, &chunk, now()));
        serve(channel);
    }
    void serve(Channel &channel) {
        while (!channel.queue.empty() && !channel.free.empty()) {
            std::pop_heap(channel.free.begin(), channel.free.end(), std::greater<double>());
            double taken = channel.free.back();
            channel.free.pop_back();
            auto chunk = channel.queue.front();
            channel.queue.pop_front();
            begin(chunk, taken > now() ? taken : now());
        }
    }
    void begin(ChunkMsg *msg, double taken) {
        msg->taken = taken;
        Job *job = msg->job;
        if (!job->started) {
            job->started = true;
            job->began = taken;
            job->ready = taken + descriptor_ns;
            note_start(job->msg, taken);
        }
        double leave = (job->ready > taken ? job->ready : taken) + overhead_ns;
        if (!msg->chunk) {
            if (!job->pushes) {
                clock->appoint(leave, CALLS(Dma::empty), this, msg);
                return;
            }
        } else if (job->translates) {
            leave += mmu->translation_ns(msg->chunk->pages, leave);
        }
        clock->appoint(leave, job->fetches ? CALLS(Dma::fetch) : CALLS(Dma::leave), this, msg);
    }
    void leave(ChunkMsg *msg) { send(msg, now(), now()); }
    void fetch(ChunkMsg *msg) {
        int64_t nbytes = msg->job->atomic ? msg->job->atomic->sent : msg->chunk ? msg->chunk->nbytes : 0;
        double asked = to_tcm->book(0, now(), now()).second;
        auto [head, tail] = tcm->book_access(false, nbytes, asked, asked);
        auto back = from_tcm->book(nbytes, head, tail);
        msg->head = back.first;
        msg->tail = back.second;
        clock->appoint(msg->head, CALLS(Dma::fetched), this, msg);
    }
    void fetched(ChunkMsg *msg) {
        if (msg->job->write) send(msg, msg->head, msg->tail);
        else end(msg, write_tcm(msg->chunk->nbytes, msg->head, msg->tail));
    }
    double write_tcm(int64_t nbytes, double head, double tail) {
        auto there = to_tcm->book(nbytes, head, tail);
        return tcm->book_access(true, nbytes, there.first, there.second).second;
    }
    static void came_back(void *owner, void *msg) {
        auto chunk = static_cast<ChunkMsg *>(owner);
        chunk->dma->back(chunk, static_cast<Transaction *>(msg));
    }
    void send(ChunkMsg *msg, double head, double tail) {
        Job *job = msg->job;
        if (job->pushes) {
            push(msg, static_cast<Push *>(job->msg), head, tail);
            return;
        }
        const Chunk *chunk = msg->chunk;
        bool write = job->write && !job->atomic;
        auto sent = new Transaction(write, chunk->nbytes, chunk->ranges, chunk->path, &came_back, msg);
        sent->shares = &chunk->shares;
        sent->atomic = job->atomic;
        if (job->atomic) sent->nbytes += job->atomic->sent + job->atomic->more;
        sent->born = head;
        sent->serialisation = tail - head;
        forward(sent, head, tail);
    }
    void back(ChunkMsg *msg, Transaction *sent) {
        double over = now();
        if (tcm && sent->nbytes) over = write_tcm(sent->nbytes, sent->head, over);
        delete sent;
        end(msg, over);
    }
    void empty(ChunkMsg *msg) { end(msg, now()); }
    void end(ChunkMsg *msg, double over) {
        Job *job = msg->job;
        Channel &channel = *msg->channel;
        channel.free.push_back(over);
        std::push_heap(channel.free.begin(), channel.free.end(), std::greater<double>());
        serve(channel);
        if (over > job->ends) job->ends = over;
        if (--job->waiting) {
            delete msg;
            return;
        }
        if (job->ends > now()) clock->appoint(job->ends, CALLS(Dma::finish), this, msg);
        else finish(msg);
    }
    void finish(ChunkMsg *msg) {
        Job *job = msg->job;
        Msg *asked = job->msg;
        asked->queueing += job->began - asked->tail;
        asked->service += now() - job->began;
        note_end(asked, now());
        delete job;
        delete msg;
        forward(asked, now(), now());
    }
    // Payload of queues.
    void push(ChunkMsg *msg, Push *push, double head, double tail) {
        int64_t nbytes = msg->chunk ? msg->chunk->nbytes : 0;
        push->sent += nbytes;
        auto chunk = new PushChunk(push, nbytes, push->sent == push->total ? push->metadata_bytes : 0);
        chunk->born = head;
        chunk->serialisation = tail - head;
        Wire *out = push->route->wires[1];
        forward(chunk, head, tail);
        end(msg, tail > out->available_at ? tail : out->available_at);
    }
    void land(PushChunk *chunk) {
        Push *push = chunk->push;
        if (push->came < 0.0) push->came = chunk->head;
        double over = write_tcm(chunk->total, chunk->head, chunk->tail);
        push->landed += chunk->total;
        delete chunk;
        if (over > push->ends) push->ends = over;
        if (push->landed != push->total) return;
        auto note = new Arrived(push, to_queues);
        note->born = now();
        note->service = push->ends - note->born;
        if (push->ends > now()) clock->appoint(push->ends, CALLS(Dma::tell), this, note);
        else tell(note);
    }
    void tell(Arrived *note) { forward(note, now(), now()); }
};
