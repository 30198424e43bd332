// What the bound without a search spends its effort on: numbers that were chosen, not derived. Goes in: nothing; the
// defaults are what is planned with. Any of them give a bound that holds: they say how near it is to the best, and how
// long it takes.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tangram::relax {

struct BoundTuning {
  // Block rates.
  std::int64_t exact_samples = 24;  ///< up to here every number of samples has a block rate of its own
  double sample_step = 1.1;         ///< from one to the next beyond: times are hardly more than in proportion there
  // Ranges of microbatches at block rates.
  std::int64_t single_microbatches = 4;  ///< up to here each is by itself: that is where one more counts
  double microbatch_step = 1.25;         ///< from one range to the next beyond
  double usual_microbatches = 32;        ///< ranges near it come first: they set the mark for the others
  std::int64_t few_microbatches = 24;    ///< from here on whole stages are hardly cheaper than thin ones
  int most_price_steps = 600;            ///< in search of prices, for one range
  int price_patience = 150;              ///< steps without a gain after which that ends
  double price_gain = 1e-4;              ///< of the bound: less is no gain
  // Whole blocks.
  bool whole_blocks = true;          ///< switched off, the bound is that of block rates
  int most_times = 10;               ///< times that are tried: each costs a search for prices
  double furthest_time = 2;          ///< the longest of them, times what block rates prove
  double first_growth = 4e-3;        ///< beyond a time that is proven but says nothing of longer ones
  double growth_factor = 4;          ///< of that, from one such time to the next
  double close_times = 1e-3;         ///< times that are apart by no more than this share are as good as equal
  double steep_guess = 0.5;          ///< no line is drawn through guesses that rise or fall like this
  double times_apart = 1e-2;         ///< from such a share on a line may be drawn through two guesses
  double runaway_guess = 2;          ///< prices that guess more than so many times the time are not begun from
  int fill_pieces = 320;             ///< pieces of the usual part of the fill
  double usual_fill = 0.8;           ///< of an iteration: hardly any pipeline takes longer to fill
  std::size_t moments_together = 8;  ///< pieces that a first look takes as one
  double range_step = 1.002;         ///< from one range of microbatches to the next, where blocks are many
  std::size_t ranges_together = 5;   ///< ranges that a first look takes as one
  double price_precision = 3e-4;     ///< of the bound: more steps could gain no more
  int most_planes = 60;              ///< steps of cutting planes, for one search of prices
  double near_cost = 0.95;           ///< planes that cost a smaller share of the largest are not kept
  double towards_solution = 0.35;    ///< next prices, from the best so far: keeps them from jumping
  double furthest_price = 20;        ///< times the first one, as nothing bounds a price yet
  double near_dearest = 0.97;        ///< ranges that cost less, of the dearest, are not looked at again
  bool operator==(const BoundTuning&) const = default;
};

}  // namespace tangram::relax
