#include "tangram/chain/solver_tuning.hpp"

namespace tangram::chain {

namespace {

constexpr std::array kSolverCuts{
    SolverCut{"completion", &SolverCuts::completion, "completion bound of labels and windows"},
    SolverCut{"unit-prices", &SolverCuts::unit_prices, "prices of units in that bound"},
    SolverCut{"cover", &SolverCuts::cover, "whether priced units cover the blocks left"},
    SolverCut{"capacity", &SolverCuts::capacity, "whether whole stages on the units left hold the blocks left"},
    SolverCut{"knapsack", &SolverCuts::knapsack, "least time of whole stages on the units left"},
    SolverCut{"end-floor", &SolverCuts::end_floor, "what passes still to come add to the end"},
    SolverCut{"dominance", &SolverCuts::dominance, "dominance between labels"},
    SolverCut{"relaxed-frontier", &SolverCuts::relaxed_frontier,
              "search of relaxed frontiers before that of whole ones"},
    SolverCut{"rising-periods", &SolverCuts::rising_periods, "periods ruled out in growing steps"},
    SolverCut{"feasible-periods", &SolverCuts::feasible_periods, "periods ruled out that hold no chain at all"},
    SolverCut{"components", &SolverCuts::components, "components that slow links join are searched apart"},
    SolverCut{"presolve", &SolverCuts::presolve, "slices removed that no chain of interest has"},
    SolverCut{"incumbents", &SolverCuts::incumbents, "beam searches for incumbents"},
    SolverCut{"timetable-pool", &SolverCuts::timetable_pool, "chains near the best, pass by pass"},
};

}  // namespace

std::span<const SolverCut> solver_cuts() { return kSolverCuts; }

}  // namespace tangram::chain
