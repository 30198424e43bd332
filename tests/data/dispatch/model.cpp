// One decode step of a transformer of two layers, small: the source of model.ptx (see README.md). Rows are requests.
#define KERNEL extern "C" __attribute__((nvptx_kernel)) void

static int thread() { return __nvvm_read_ptx_sreg_tid_x(); }
static int block() { return __nvvm_read_ptx_sreg_ctaid_x(); }
static int threads() { return __nvvm_read_ptx_sreg_ntid_x(); }

KERNEL embed(const float* table, const int* tokens, float* hidden, int width) {
  for (int i = thread(); i < width; i += threads()) {
    hidden[block() * width + i] = table[tokens[block()] * width + i];
  }
}

KERNEL norm(const float* x, const float* weight, float* y, int width) {
  const float* row = x + block() * width;
  float sum = 0;
  for (int i = 0; i < width; ++i) sum += row[i] * row[i];
  const float scale = 1.0f / __nvvm_sqrt_rn_f(sum / width + 0x1p-16f);
  if (thread() < width) y[block() * width + thread()] = row[thread()] * scale * weight[thread()];
}

// y (rows x columns) = x (rows x inner) weight (inner x columns): a block for each row, a thread for each column.
KERNEL project(const float* x, const float* weight, float* y, int inner, int columns) {
  float sum = 0;
  for (int k = 0; k < inner; ++k) sum += x[block() * inner + k] * weight[k * columns + thread()];
  y[block() * columns + thread()] = sum;
}

// The keys and values of this token become row `position` of the request's cache: [request][position][key, value].
KERNEL write_cache(const float* qkv, float* cache, int width, int position, int positions) {
  const float* key = qkv + block() * 3 * width + width;
  cache[(block() * positions + position) * 2 * width + thread()] = key[thread()];
}

// One head: softmax without its division by the largest score, which small numbers do not need.
KERNEL attend(const float* qkv, const float* cache, float* out, int width, int positions) {
  const float* query = qkv + block() * 3 * width;
  const float* rows = cache + block() * positions * 2 * width;
  float total = 0;
  float sum = 0;
  for (int p = 0; p < positions; ++p) {
    float score = 0;
    for (int i = 0; i < width; ++i) score += query[i] * rows[p * 2 * width + i];
    const float share = __nvvm_ex2_approx_f(score * 0x1p-6f);
    total += share;
    sum += share * rows[p * 2 * width + width + thread()];
  }
  out[block() * width + thread()] = sum / total;
}

KERNEL add(float* hidden, const float* y, int width) {
  hidden[block() * width + thread()] += y[block() * width + thread()];
}

KERNEL gate(const float* up, float* out, int width) {
  const float x = up[block() * 2 * width + thread()];
  const float y = up[block() * 2 * width + width + thread()];
  out[block() * width + thread()] = x / (1.0f + __nvvm_ex2_approx_f(-x)) * y;
}

KERNEL choose(const float* scores, int* chosen, int columns) {
  int best = 0;
  for (int i = 1; i < columns; ++i) {
    if (scores[block() * columns + i] > scores[block() * columns + best]) best = i;
  }
  if (thread() == 0) chosen[block()] = best;
}
