#include <algorithm>

#include "block_parts.hpp"

namespace tangram::cost {

namespace {

// Exchanges that the host issues around a region of sequence parallelism, a kernel of the model's count each: what is
// read is gathered, backward for the gradients of weights once more, and sums are scattered. All-reduces are in
// host_issue, as fitted.
constexpr int kExchangesForward = 2, kExchangesBackward = 3;
constexpr int kExpertExchanges = 2;

}  // namespace

Passes tensor_exchange(const BlockContext& c) {
  const double values = c.local.tokens * c.local.hidden;
  const double bytes = c.local.element * values;
  const Exchanges& e = c.exchanges;
  if (!c.degrees.sequence_parallel) {
    const double reduce = e.seconds(Collective::kAllReduce, bytes, e.groups.tensor);
    return {reduce, reduce};
  }
  const NarrowCopies& copies = c.rates.copies;
  const double scatter = e.seconds(Collective::kReduceScatter, bytes, e.groups.tensor);
  const auto exchange = [&](double narrow) {
    const double gathered = narrow > 0 ? narrow * values : bytes;
    return e.seconds(Collective::kAllGather, gathered, e.groups.tensor) + scatter;
  };
  const double forward = exchange(copies.one);
  const bool alike = copies.one <= 0 || copies.gathered == 1;
  return {forward, alike ? forward : exchange(copies.gathered * copies.one), kExchangesForward, kExchangesBackward};
}

Passes exchange_copies(const BlockContext& c) {
  if (!c.exchanges.shape.methods.copied_exchanges || !c.degrees.sequence_parallel || c.degrees.tp == 1) return {};
  constexpr double kCopy = 2;
  const Passes one = stream(c, c.local.tokens * c.local.hidden, kCopy, kCopy);
  Passes both = one;
  both += one;
  return both;
}

namespace {

/// Of one way: to the experts, or back.
double dispatch(const BlockContext& c, const model::Job& job) {
  const LocalBlock& l = c.local;
  const Exchanges& e = c.exchanges;
  if (job.expert_dispatch == model::ExpertDispatch::kAllToAll) {
    // The busiest rank receives the imbalanced share; expert_rows holds it for all expert-tp ranks together.
    return e.seconds(Collective::kAllToAll, l.element * l.expert_rows * l.expert_input / c.degrees.etp,
                     e.groups.expert);
  }
  const model::FeedForward& f = c.block.feed_forward;
  const TokenChoice choice{static_cast<double>(f.experts_per_token), f.expert_groups, f.groups_per_token};
  return job.routing_imbalance *
         dispatch_seconds(l.element * l.rows * l.expert_input, choice, e.groups.expert, e.shape);
}

}  // namespace

ExpertExchange expert_exchange(const BlockContext& c, const model::Job& job) {
  const LocalBlock& l = c.local;
  const Exchanges& e = c.exchanges;
  const double received = l.element * l.expert_rows * l.expert_input;
  return {2 * dispatch(c, job),
          e.seconds(Collective::kAllGather, received, e.groups.expert_tensor) +
              e.seconds(Collective::kReduceScatter, received, e.groups.expert_tensor),
          c.degrees.ep > 1 ? kExpertExchanges : 0};
}

namespace {

/// Positions exchanged for heads, and what comes of these exchanged back.
double heads_exchange(const BlockContext& c) {
  double seconds = 0;
  for (const double values : exchanged_values(c)) {
    seconds += c.exchanges.seconds(Collective::kAllToAll, c.local.element * values, c.exchanges.groups.context);
  }
  return seconds;
}

}  // namespace

Passes context_exchange(const BlockContext& c) {
  if (c.degrees.cp == 1 || !c.block.mixes()) return {};
  const Exchanges& e = c.exchanges;
  if (c.local.recurrence) {
    const double bytes = recurrence_exchange(*c.local.recurrence, c.local.element);
    const double seconds = e.seconds(Collective::kAllToAll, bytes, e.groups.context);
    return {seconds, seconds};
  }
  if (c.context == model::ContextExchange::kAllToAll) {
    const double seconds = heads_exchange(c);
    return {seconds, seconds};
  }
  const double all = c.local.element * gathered_values(c);
  const double gather = e.seconds(Collective::kAllGather, all, e.groups.context);
  if (c.context == model::ContextExchange::kAllGather) {
    return {gather, gather + e.seconds(Collective::kReduceScatter, all, e.groups.context)};
  }
  return {gather, e.seconds(Collective::kAllGather, 2 * all, e.groups.context)};
}

Passes hidden_exchange(const BlockContext& c, const Passes& exchange, const Passes& free) {
  const bool ring = c.block.attends() && c.context == model::ContextExchange::kRing;
  if (!ring || !c.exchanges.shape.methods.overlapped) return {};
  const double hiding = (c.degrees.cp - 1.0) / c.degrees.cp;
  return {std::min(exchange.forward, hiding * free.forward), std::min(exchange.backward, hiding * free.backward)};
}

}  // namespace tangram::cost
