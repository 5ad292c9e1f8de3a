// Times recorded streams on a machine: the models of kernbench_builtin/components, one header each, equal bit for bit.
// What comes in is written by machine_form.py and stream_form.py, what goes out is read by timing.py.
#include "dma.hpp"
#include "pe_cpu.hpp"
#include "queues.hpp"
#include "tiles.hpp"
#include <memory>
#include <string>

enum NodeKind {
    FORWARDING, HOST, IO_CPU, M_CPU, MEMORY, SCRATCHPAD, CPU, DMA, MMU, MATRIX, VECTOR, SCHEDULER, FETCH_STORE, QUEUES
};

// Columns of numbers, read one after the other.
struct Reader {
    const double *at;
    double real() { return *at++; }
    int64_t whole() { return static_cast<int64_t>(*at++); }
};

struct Engine {
    Clock clock;
    std::vector<std::unique_ptr<Component>> nodes;
    std::vector<Wire> wires;
    std::vector<Path> paths;
    std::vector<Page> pages;
    std::vector<Transfer> transfers;
    std::vector<Times> times;
    std::vector<Queue> queues;
    std::vector<std::unique_ptr<Command>> owned;
    std::vector<Command *> commands;
    std::vector<std::unique_ptr<Request>> requests;
    std::vector<std::unique_ptr<Order>> orders;
    std::vector<std::vector<int64_t>> streams;
    std::vector<double> held;  // by burst until when an atomic unit has it
    std::vector<PeCpu *> cpus;
    Host *host = nullptr;

    Component *node(Reader &in) {
        int64_t number = in.whole();
        return number < 0 ? nullptr : nodes[number].get();
    }
    const Path *path(Reader &in) {
        int64_t number = in.whole();
        return number < 0 ? nullptr : &paths[number];
    }
    Wire *wire(Reader &in) {
        int64_t number = in.whole();
        return number < 0 ? nullptr : &wires[number];
    }

    Component *make(int64_t kind) {
        switch (kind) {
            case FORWARDING: return new Forwarding;
            case HOST: return host = new Host;
            case IO_CPU: return new IoCpu;
            case M_CPU: return new MCpu;
            case MEMORY:
            case SCRATCHPAD: return new Memory;
            case CPU: return new PeCpu;
            case DMA: return new Dma;
            case MMU: return new Mmu;
            case MATRIX: return new MatrixUnit;
            case VECTOR: return new VectorUnit;
            case SCHEDULER: return new Scheduler;
            case FETCH_STORE: return new FetchStore;
            default: return new Queues;
        }
    }
    void read_machine(Reader in) {
        std::vector<int64_t> kinds(static_cast<size_t>(in.whole()));
        for (auto &kind : kinds) {
            kind = in.whole();
            nodes.emplace_back(make(kind));
            nodes.back()->clock = &clock;
            nodes.back()->here.nodes = {nodes.back().get()};
        }
        wires.resize(static_cast<size_t>(in.whole()));
        int64_t edge = 0;
        for (auto &wire : wires) {
            wire.clock = &clock;
            wire.key = ++edge << 40;
            wire.receiver = node(in);
            wire.arrive = in.whole() ? &internal : &arriving;
            wire.rule = static_cast<HeadRule>(in.whole());
            wire.bandwidth = in.real();
            wire.latency = in.real();
            wire.payload_bytes = in.whole();
            wire.header_bytes = in.whole();
        }
        paths.resize(static_cast<size_t>(in.whole()));
        for (auto &way : paths) {
            int64_t length = in.whole();
            for (int64_t hop = 0; hop < length; ++hop) {
                way.nodes.push_back(node(in));
                way.wires.push_back(wire(in));
            }
            way.back = path(in);
            if (length == 2) way.nodes[0]->hops[way.nodes[1]] = &way;
        }
        for (size_t number = 0; number < kinds.size(); ++number) read_node(kinds[number], nodes[number].get(), in);
    }
    static void arriving(void *unit, void *msg) { static_cast<Component *>(unit)->arrive(static_cast<Msg *>(msg)); }
    static void internal(void *unit, void *msg) { static_cast<Component *>(unit)->on_internal(static_cast<Msg *>(msg)); }

    void read_node(int64_t kind, Component *node, Reader &in) {
        node->overhead_ns = in.real();
        switch (kind) {
            case MEMORY:
            case SCRATCHPAD: {
                auto memory = static_cast<Memory *>(node);
                for (int64_t left = in.whole(); left > 0; --left) memory->channels.push_back(wire(in));
                memory->burst_bytes = in.whole();
                memory->step_ns = in.real();
                memory->unit_free.assign(memory->channels.size(), 0.0);
                memory->held = &held;
                break;
            }
            case CPU: {
                auto cpu = static_cast<PeCpu *>(node);
                cpu->dispatch_ns = in.real();
                cpu->element_read_ns = in.real();
                cpu->room.make(in.whole());
                cpu->commands = &commands;
                cpu->hire(1);
                cpus.push_back(cpu);
                break;
            }
            case DMA: {
                auto dma = static_cast<Dma *>(node);
                dma->descriptor_ns = in.real();
                dma->reads.free.assign(static_cast<size_t>(in.whole()), 0.0);
                dma->writes.free.assign(static_cast<size_t>(in.whole()), 0.0);
                dma->mmu = static_cast<Mmu *>(this->node(in));
                dma->tcm = static_cast<Memory *>(this->node(in));
                dma->to_tcm = wire(in);
                dma->from_tcm = wire(in);
                dma->to_queues = path(in);
                dma->transfers = &transfers;
                break;
            }
            case MMU: {
                auto mmu = static_cast<Mmu *>(node);
                mmu->look_up_ns = node->overhead_ns;
                mmu->walk_ns = in.real();
                mmu->sets.resize(static_cast<size_t>(in.whole()));
                mmu->ways = in.whole();
                mmu->walker_free.assign(static_cast<size_t>(in.whole()), 0.0);
                mmu->pages = &pages;
                break;
            }
            case MATRIX: {
                auto unit = static_cast<MatrixUnit *>(node);
                unit->start_up_ns = node->overhead_ns;
                unit->arrays.resize(static_cast<size_t>(in.whole()));
                unit->overlaps = in.whole();
                unit->times = &times;
                break;
            }
            case VECTOR: static_cast<VectorUnit *>(node)->hire(in.whole()); break;
            case SCHEDULER: {
                auto unit = static_cast<Scheduler *>(node);
                unit->hire(in.whole());
                unit->tiles_in_flight = in.whole();
                unit->staging = in.whole();
                break;
            }
            case FETCH_STORE: {
                auto unit = static_cast<FetchStore *>(node);
                unit->hire(in.whole());
                unit->capacity = in.whole();
                unit->to_tcm = path(in);
                break;
            }
            case QUEUES: {
                auto unit = static_cast<Queues *>(node);
                unit->metadata_bytes = in.whole();
                unit->credit_bytes = in.whole();
                unit->to_dma = path(in);
                unit->queues = &queues;
                break;
            }
            default: break;
        }
    }

    std::vector<Share> read_shares(Reader &in) {
        std::vector<Share> shares(static_cast<size_t>(in.whole()));
        for (auto &share : shares) share = {in.whole(), in.whole()};
        return shares;
    }
    void read_stream(Reader in) {
        pages.resize(static_cast<size_t>(in.whole()));
        for (auto &page : pages) page = {in.whole(), in.whole()};
        transfers.resize(static_cast<size_t>(in.whole()));
        for (auto &transfer : transfers) {
            transfer.chunks.resize(static_cast<size_t>(in.whole()));
            for (auto &chunk : transfer.chunks) {
                chunk.path = path(in);
                chunk.nbytes = in.whole();
                chunk.ranges = in.whole();
                chunk.shares = read_shares(in);
                chunk.pages.resize(static_cast<size_t>(in.whole()));
                for (auto &use : chunk.pages) use = {in.whole(), in.whole()};
            }
        }
        times.resize(static_cast<size_t>(in.whole()));
        for (auto &each : times) {
            each.one_fold = in.whole();
            for (double *time : {&each.load, &each.last_fold, &each.streams, &each.own, &each.unfilled, &each.into,
                                 &each.through, &each.emptied, &each.alone})
                *time = in.real();
        }
        queues.resize(static_cast<size_t>(in.whole()));
        int64_t number = 0;
        for (auto &queue : queues) {
            queue.number = number++;
            queue.slots = in.whole();
            queue.slot_bytes = in.whole();
            queue.room = &static_cast<PeCpu *>(node(in))->room;
            queue.receiver = static_cast<Queues *>(node(in));
            queue.route = path(in);
            queue.back = path(in);
            for (int64_t left = in.whole(); left > 0; --left) {
                int64_t nbytes = in.whole();
                queue.transfers[nbytes] = in.whole();
            }
        }
        for (int64_t left = in.whole(); left > 0; --left) commands.push_back(new Command);
        for (auto command : commands) {
            owned.emplace_back(command);
            read_command(*command, in);
        }
        read_host(in);
    }
    void read_command(Command &command, Reader &in) {
        command.pe = in.whole();
        command.number = in.whole();
        command.nbytes = in.whole();
        command.path = path(in);
        command.unit = static_cast<Unit>(in.whole());
        int64_t needs = in.whole();
        command.needs = needs < 0 ? nullptr : commands[needs];
        command.cpu = static_cast<PeCpu *>(command.path->nodes[0]);
        command.holds.resize(static_cast<size_t>(in.whole()));
        for (auto &block : command.holds) block = in.whole();
        switch (command.unit) {
            case DMA_UNIT: {
                bool atomic = (command.write = in.whole()) && in.whole();
                command.value = in.whole();
                if (atomic) read_atomic(command.atomic, in);
                break;
            }
            case GEMM_UNIT:
                command.value = in.whole();
                command.on_sum = in.whole();
                command.sum_before = in.whole();
                break;
            case MATH_UNIT: command.took = in.real(); break;
            case SCHEDULER_UNIT:
                command.tiles.resize(static_cast<size_t>(in.whole()));
                for (auto &tile : command.tiles) read_tile(tile, in);
                break;
            case QUEUES_UNIT:
                command.sends = in.whole();
                command.queue = in.whole();
                command.value = in.whole();
                command.lends = in.whole();
                if (!command.sends) command.cpu->queues = queues[command.queue].receiver;
                break;
        }
    }
    void read_atomic(Atomic &atomic, Reader &in) {
        atomic.sent = in.whole();
        atomic.more = in.whole();
        atomic.bursts.resize(static_cast<size_t>(in.whole()));
        for (auto &burst : atomic.bursts) {
            burst = {in.whole(), in.whole(), in.whole()};
            if (static_cast<size_t>(burst.number) >= held.size()) held.resize(static_cast<size_t>(burst.number) + 1, -INF);
        }
    }
    void read_tile(Tile &tile, Reader &in) {
        for (int64_t *field : {&tile.m_tile, &tile.n_tile, &tile.k_tile, &tile.staged_bytes, &tile.operand_bytes,
                               &tile.sum_bytes, &tile.last_use})
            *field = in.whole();
        tile.stages.resize(static_cast<size_t>(in.whole()));
        for (auto &stage : tile.stages) {
            stage.type = static_cast<Stage::Type>(in.whole());
            stage.unit = node(in);
            stage.value = in.whole();
            stage.took = in.real();
        }
    }
    void read_host(Reader &in) {
        int64_t launches = in.whole();
        for (auto cpu : cpus) {
            cpu->launches.resize(static_cast<size_t>(launches));
            cpu->launched.assign(static_cast<size_t>(launches), {-1, -1});
        }
        streams.resize(static_cast<size_t>(in.whole()));
        for (auto &stream : streams) {
            int64_t launch = in.whole();
            auto cpu = static_cast<PeCpu *>(node(in));
            stream.resize(static_cast<size_t>(in.whole()));
            for (auto &field : stream) field = in.whole();
            cpu->launches[launch] = &stream;
        }
        launches = 0;
        for (int64_t left = in.whole(); left > 0; --left) {
            auto request = new Request;
            requests.emplace_back(request);
            host->requests.push_back(request);
            request->path = path(in);
            if (in.whole()) {
                request->write = in.whole();
                request->pieces.resize(static_cast<size_t>(in.whole()));
                for (auto &piece : request->pieces) {
                    piece.path = path(in);
                    piece.total = in.whole();
                    piece.ranges = in.whole();
                    piece.shares = read_shares(in);
                }
                continue;
            }
            auto order = new Order;
            orders.emplace_back(order);
            request->order = order;
            order->launch = in.whole();
            if (order->launch) order->number = launches++;
            order->unmap = in.whole();
            order->nbytes = in.whole();
            order->ranges.resize(static_cast<size_t>(in.whole()));
            for (auto &range : order->ranges) range = {in.whole(), in.whole()};
            read_tree(order->tree, in);
        }
        host->program.resize(static_cast<size_t>(in.whole()));
        for (auto &step : host->program) step = in.whole();
        clock.push(0.0, URGENT, 0, &Host::starting, host, nullptr);
    }
    void read_tree(Tree &tree, Reader &in) {
        tree.reach_ns = in.real();
        int64_t number = in.whole();
        tree.below.resize(static_cast<size_t>(number));
        for (int64_t at = 0; at < number; ++at) {
            tree.ways.push_back(path(in));
            read_tree(tree.below[at], in);
        }
    }
};

extern "C" {
// The checksum of the sources; timing.py refuses what is of others.
int64_t kernbench_native_sources() { return KERNBENCH_SOURCES; }

void *kernbench_native_open(const double *machine, const double *stream) {
    auto engine = new Engine;
    engine->read_machine({machine});
    engine->read_stream({stream});
    return engine;
}
int64_t kernbench_native_advance(void *engine, int64_t most) { return static_cast<Engine *>(engine)->clock.advance(most); }
// Now, events, and whether the host's program is over.
void kernbench_native_state(void *opened, double *out) {
    auto engine = static_cast<Engine *>(opened);
    out[0] = engine->clock.now;
    out[1] = static_cast<double>(engine->clock.happened);
    out[2] = engine->clock.halted;
    out[3] = engine->clock.fault;
}
// Start and end of each command.
void kernbench_native_commands(void *engine, double *out) {
    for (auto command : static_cast<Engine *>(engine)->commands) {
        *out++ = command->started_ns;
        *out++ = command->ended_ns;
    }
}
// Of each wire: busy, bytes, deliveries, waits, their time, the longest, and when it is free.
void kernbench_native_wires(void *engine, double *out) {
    for (auto &wire : static_cast<Engine *>(engine)->wires) {
        double told[] = {wire.busy_ns, static_cast<double>(wire.bytes_carried),
                         static_cast<double>(wire.key & ((int64_t{1} << 40) - 1)), static_cast<double>(wire.waits),
                         wire.waited_ns, wire.longest_wait_ns, wire.available_at};
        for (double field : told) *out++ = field;
    }
}
// When each request was submitted and completed.
void kernbench_native_requests(void *engine, double *out) {
    for (auto &request : static_cast<Engine *>(engine)->requests) {
        *out++ = request->born;
        *out++ = request->completed_ns;
    }
}
// Start and end of each launch on each PE, PE by PE.
void kernbench_native_launches(void *engine, double *out) {
    for (auto cpu : static_cast<Engine *>(engine)->cpus)
        for (auto &launch : cpu->launched) {
            *out++ = launch.first;
            *out++ = launch.second;
        }
}
void kernbench_native_close(void *engine) { delete static_cast<Engine *>(engine); }
}
