// Address translation, as kernbench_builtin/components/pe_mmu.py has it.
#pragma once
#include "fan_out.hpp"
#include <algorithm>
#include <list>

struct Page {
    int64_t base, size;
};
// A page of a transfer: its number, and the set of the TLB that it belongs to.
struct PageUse {
    int64_t page, set;
};

struct Mmu : Component {
    double look_up_ns, walk_ns;
    int64_t ways;
    const std::vector<Page> *pages;
    struct Entry {
        int64_t page;
        double known;
    };
    struct Set {
        std::vector<Entry> entries;  // the least recently used first
        int64_t latest = -1;
        double latest_known = 0;
    };
    std::vector<Set> sets;
    std::vector<double> walker_free;  // a heap, the first that is free on top

    void arrive(Msg *msg) override {
        auto order = static_cast<FanOutMsg *>(msg)->order;
        serve_overhead(msg, look_up_ns * static_cast<double>(std::max<size_t>(1, order->ranges.size())));
    }
    void emit(Msg *msg, double head, double tail) override {
        auto order = static_cast<FanOutMsg *>(msg)->order;
        if (order->unmap && !msg->reply) forget(order->ranges);
        forward(msg, head, tail);
    }
    double translation_ns(const std::vector<PageUse> &uses, double began) {
        double at = began, ready = began;
        for (const auto &use : uses) {
            at += look_up_ns;
            double known = look_up(use, at);
            if (known < at) known = at;
            if (known > ready) ready = known;
        }
        return ready - began;
    }
    double look_up(const PageUse &use, double at) {
        Set &set = sets[use.set];
        if (set.latest == use.page) return set.latest_known;
        auto &entries = set.entries;
        auto found = std::find_if(entries.begin(), entries.end(), [&](const Entry &e) { return e.page == use.page; });
        double known;
        if (found == entries.end()) {
            if (static_cast<int64_t>(entries.size()) >= ways) entries.erase(entries.begin());
            known = at;
            if (walk_ns != 0.0) {
                double free = walker_free.front();
                known = (free > at ? free : at) + walk_ns;
                std::pop_heap(walker_free.begin(), walker_free.end(), std::greater<double>());
                walker_free.back() = known;
                std::push_heap(walker_free.begin(), walker_free.end(), std::greater<double>());
            }
        } else {
            known = found->known;
            entries.erase(found);
        }
        set.latest = use.page;
        set.latest_known = known;
        entries.push_back({use.page, known});
        return known;
    }
    // Forget every page that holds a byte of the ranges, which are in order and do not overlap.
    void forget(const std::vector<Range> &ranges) {
        bool any = std::any_of(sets.begin(), sets.end(), [](const Set &set) { return !set.entries.empty(); });
        if (!any) return;
        for (auto &set : sets) {
            auto gone = [&](const Entry &entry) {
                const Page &page = (*pages)[entry.page];
                auto after = std::lower_bound(ranges.begin(), ranges.end(), page.base + page.size,
                                              [](const Range &range, int64_t end) { return range.start < end; });
                return after != ranges.begin() && std::prev(after)->end > page.base;
            };
            set.entries.erase(std::remove_if(set.entries.begin(), set.entries.end(), gone), set.entries.end());
            set.latest = -1;
        }
    }
};
