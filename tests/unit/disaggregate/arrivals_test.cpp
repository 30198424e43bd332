// Arrivals as files and at random, and what becomes of steps that are not a grid.
#include <cmath>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "tangram/disaggregate/adapt.hpp"

using namespace tangram;
using namespace tangram::disaggregate;

TEST_CASE("disaggregate arrivals: lines of milliseconds and tokens") {
  const auto requests = read_arrivals("# trace\nms,prompt,generated\n0,374,44\n4315.5,396,109\r\n\n", "a.csv");
  REQUIRE(requests);
  REQUIRE(requests->size() == 2);
  CHECK(requests->at(1).arrival == Approx(4.3155));
  CHECK(requests->at(1).prompt == 396);
  CHECK(requests->at(1).generated == 109);
}

TEST_CASE("disaggregate arrivals: mistakes have their lines") {
  const auto requests = read_arrivals("5,1,1\n4,1,1\n6,0,1\n7,1\n8,1,1,1\nnine,1,1\n1e400,1,1\n", "a.csv");
  REQUIRE_FALSE(requests);
  std::vector<int> lines;
  for (const Diagnostic& mistake : requests.error()) lines.push_back(mistake.where.line);
  CHECK(lines == std::vector<int>{2, 3, 4, 5, 6, 7});
  CHECK_FALSE(read_arrivals("# nothing\n", "a.csv"));
}

TEST_CASE("disaggregate arrivals: at random they come as often as asked for") {
  // The mean of 10,000 exponential gaps is within 4 / sqrt(10,000) of their mean in all but 6 of 100,000 draws.
  const auto requests = random_arrivals(10'000, 4, {0, 100, 10}, 3);
  REQUIRE(requests.size() == 10'000);
  CHECK(std::abs(requests.back().arrival / 2500 - 1) < 0.04);
  CHECK(requests.back().prompt == 100);
}

TEST_CASE("disaggregate arrivals: decode steps are a grid, on two classes") {
  Problem problem;
  problem.classes = {{"A", 1, kNever}, {"B", 1, kNever}};
  problem.links = Grid<Link>(2, 2);
  problem.links(0, 1).bytes_per_second = 1e9;
  problem.phases = {{"decode", 1, 1}};
  problem.kernels.push_back({"k", 0, 0, Block::kOther, {2e-3, 1e-3}, 0});
  const MeasuredStep prefill{&problem, 0, 1, 100, 50};
  std::vector<MeasuredStep> decodes{{&problem, 0, 1, 100, 1}, {&problem, 0, 2, 200, 2}};
  CHECK_FALSE(serving_model(prefill, decodes, 10, 4));
  decodes.pop_back();
  const auto model = serving_model(prefill, decodes, 10, 4);
  REQUIRE(model);
  CHECK(model->gpus[0].decode.at(1, 100) == Approx(1e-3));  // B decodes faster
  CHECK(model->gpus[1].prefill_seconds_per_token == Approx(2e-3 / 50));
  CHECK(model->cache_seconds_per_token == Approx(1e-8));  // from A to B
  problem.kernels.front().seconds[0] = kNever;
  CHECK_FALSE(serving_model(prefill, decodes, 10, 4));
}
