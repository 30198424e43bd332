// Kernels of an inference step, small: the source of kernels.ptx (see README.md). In C++ as clang reads it for a GPU;
// tests/unit/interpret runs the same arithmetic on the CPU.
#define SHARED __attribute__((address_space(3)))
#define KERNEL extern "C" __attribute__((nvptx_kernel)) void

static int thread() { return __nvvm_read_ptx_sreg_tid_x(); }
static int block() { return __nvvm_read_ptx_sreg_ctaid_x(); }
static int threads() { return __nvvm_read_ptx_sreg_ntid_x(); }
static int blocks() { return __nvvm_read_ptx_sreg_nctaid_x(); }

KERNEL add(const float* a, const float* b, float* c, int n) {
  const int i = block() * threads() + thread();
  if (i < n) c[i] = a[i] + b[i];
}

KERNEL residual(float* x, const float* y, int n) {
  for (int i = block() * threads() + thread(); i < n; i += blocks() * threads()) x[i] += y[i];
}

// rows x width, one block a row: x / sqrt(mean of x^2 + epsilon) * weight.
static SHARED float partial[256];
KERNEL rms_norm(const float* x, const float* weight, float* y, int width, float epsilon) {
  const float* row = x + block() * width;
  float sum = 0;
  for (int i = thread(); i < width; i += threads()) sum += row[i] * row[i];
  partial[thread()] = sum;
  __syncthreads();
  for (int half = threads() / 2; half > 0; half /= 2) {
    if (thread() < half) partial[thread()] += partial[thread() + half];
    __syncthreads();
  }
  const float scale = 1.0f / __nvvm_sqrt_rn_f(partial[0] / width + epsilon);
  for (int i = thread(); i < width; i += threads()) y[block() * width + i] = row[i] * scale * weight[i];
}

// c (m x n) = a (m x k) b (k x n) by tiles of 16 x 16; all sizes are multiples of 16.
static SHARED float tile_a[256];
static SHARED float tile_b[256];
KERNEL matmul(const float* a, const float* b, float* c, int m, int n, int k) {
  const int x = thread() % 16;
  const int y = thread() / 16;
  const int row = block() / (n / 16) * 16 + y;
  const int column = block() % (n / 16) * 16 + x;
  float sum = 0;
  for (int step = 0; step < k; step += 16) {
    tile_a[y * 16 + x] = a[row * k + step + x];
    tile_b[y * 16 + x] = b[(step + y) * n + column];
    __syncthreads();
    for (int i = 0; i < 16; ++i) sum += tile_a[y * 16 + i] * tile_b[i * 16 + x];
    __syncthreads();
  }
  c[row * n + column] = sum;
}

KERNEL gather(const float* table, const int* tokens, float* out, int width) {
  for (int i = thread(); i < width; i += threads()) out[block() * width + i] = table[tokens[block()] * width + i];
}

// One token of a sequence into its page: the address comes from the table of pages.
KERNEL write_kv(const float* key, float* cache, const int* pages, int position, int width) {
  const int page = pages[position / 16];
  for (int i = thread(); i < width; i += threads()) cache[(page * 16 + position % 16) * width + i] = key[i];
}

KERNEL grouped(const float* const* sources, float* out, int n) {
  if (thread() < n) out[block() * n + thread()] = sources[block()][thread()];
}

KERNEL histogram(const int* keys, int* counts, int n, int mask) {
  const int i = block() * threads() + thread();
  if (i < n) __atomic_fetch_add(&counts[keys[i] & mask], 1, __ATOMIC_RELAXED);
}

// Integers of all kinds: what CPU and GPU must agree on to the bit.
KERNEL integers(const unsigned* a, const unsigned* b, unsigned* out, long long* wide) {
  const int i = block() * threads() + thread();
  const unsigned x = a[i];
  const unsigned y = b[i] | 1;
  const int s = static_cast<int>(x);
  const int t = static_cast<int>(y);
  unsigned h = x + y * 31;
  h ^= x / y + x % y * 7;
  h ^= static_cast<unsigned>(s / 13) ^ static_cast<unsigned>(s % 13);
  h += __builtin_popcount(x) + __builtin_clz(y) + __builtin_ctz(y);
  h ^= x << (y & 31) | x >> (y & 15);
  h ^= static_cast<unsigned>(s >> (y & 31));
  h += s < t ? 5u : 9u;
  h ^= static_cast<unsigned char>(x) * static_cast<signed char>(y);
  h = h << 13 | h >> 19;
  out[i] = h;
  wide[i] = static_cast<long long>(s) * t + static_cast<long long>(static_cast<unsigned long long>(x) * y >> 7);
}

KERNEL floats(const float* a, const float* b, float* out, int* rounded) {
  const int i = block() * threads() + thread();
  const float x = a[i];
  const float y = b[i];
  float r = x * y + (x - y) / (y * y + 1.0f);
  r += __nvvm_sqrt_rn_f(x * x + 0.5f);
  r = __nvvm_fma_rn_f(r, x, y);
  r = __builtin_fmaxf(r, x) - __builtin_fminf(r, y) + __builtin_fabsf(x);
  if (x < y) r = -r;
  out[i] = r;
  rounded[i] = static_cast<int>(x * 100.0f) + static_cast<int>(__builtin_floorf(y)) + static_cast<unsigned>(x * x);
}
