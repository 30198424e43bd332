// A product on matrix units: the source of matrix_units.ptx (see README.md).
#define SHARED __attribute__((address_space(3)))
#define KERNEL extern "C" __attribute__((nvptx_kernel)) void

using Half = unsigned short;
using Word = unsigned;

static int thread() { return __nvvm_read_ptx_sreg_tid_x(); }
static int block() { return __nvvm_read_ptx_sreg_ctaid_x(); }

static void copy_16(SHARED Half* to, const Half* from) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" ::"r"((Word)(unsigned long)to), "l"(from) : "memory");
}

static void wait_for_copies() {
  asm volatile("cp.async.commit_group; cp.async.wait_group 0;" ::: "memory");
  __syncthreads();
}

// c (m x n, f32) = a (m x k) b (k x n), both f16: one warp a block, tiles of 16 x 8 along k in steps of 16.
alignas(16) static SHARED Half rows_of_a[16 * 16];
alignas(16) static SHARED Half rows_of_b[16 * 8];
KERNEL product_f16(const Half* a, const Half* b, float* c, int n, int k) {
  const int lane = thread();
  const int row = block() / (n / 8) * 16;
  const int column = block() % (n / 8) * 8;
  float s0 = 0, s1 = 0, s2 = 0, s3 = 0;
  for (int step = 0; step < k; step += 16) {
    copy_16(rows_of_a + lane * 8, a + (row + lane / 2) * k + step + lane % 2 * 8);
    if (lane < 16) copy_16(rows_of_b + lane * 8, b + (step + lane) * n + column);
    wait_for_copies();
    Word a0, a1, a2, a3, b0, b1;
    // Matrices of a: upper left, lower left, upper right, lower right.
    const Word of_a = (Word)(unsigned long)(rows_of_a + lane % 16 * 16 + lane / 16 * 8);
    const Word of_b = (Word)(unsigned long)(rows_of_b + lane % 16 * 8);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(a0), "=r"(a1), "=r"(a2), "=r"(a3)
                 : "r"(of_a)
                 : "memory");
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
                 : "=r"(b0), "=r"(b1)
                 : "r"(of_b)
                 : "memory");
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(s0), "+f"(s1), "+f"(s2), "+f"(s3)
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
    __syncthreads();
  }
  float* out = c + (row + lane / 4) * n + column + lane % 4 * 2;
  out[0] = s0;
  out[1] = s1;
  out[8 * n] = s2;
  out[8 * n + 1] = s3;
}
