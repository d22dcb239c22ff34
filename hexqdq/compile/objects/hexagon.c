/* The run time of a Hexagon segment: memory functions, integer division, and a server for qemu.
 *
 * The server speaks little-endian u32 over stdin and stdout. Once: magic, inputs, outputs, arena
 * bytes, constant bytes, the size of every input and output, the constants; answered by the magic.
 * Then per request: 1 and the inputs' bytes, answered by status, packets, instructions, HVX
 * instructions and the outputs' bytes. 0 or the end of the stream ends the process.
 */
typedef unsigned int u32;
typedef unsigned char u8;
typedef __SIZE_TYPE__ size_t;

enum { MAGIC = 0x51445848, LIMIT = 256, ALIGNMENT = 128, SLACK = 1024 };
enum { SYS_READ = 63, SYS_WRITE = 64, SYS_EXIT_GROUP = 94, SYS_MMAP = 222 };
enum { READ_WRITE = 3, PRIVATE_ANONYMOUS = 0x22 };

int hexqdq_segment(const u8 *const *inputs, u8 *const *outputs, const u8 *constants, u8 *arena);

void *memcpy(void *restrict target, const void *restrict source, size_t count) {
  typedef u8 block __attribute__((vector_size(128), aligned(1)));
  u8 *to = target;
  const u8 *from = source;
  for (; count >= sizeof(block); count -= sizeof(block), to += sizeof(block), from += sizeof(block))
    *(block *)to = *(const block *)from;
  for (; count; count--) *to++ = *from++;
  return target;
}

void *__hexagon_memcpy_likely_aligned_min32bytes_mult8bytes(void *restrict target, const void *restrict source,
                                                            size_t count) {
  return memcpy(target, source, count);
}

void *memset(void *target, int value, size_t count) {
  typedef u8 block __attribute__((vector_size(128), aligned(1)));
  u8 *to = target;
  block filled = (block){} + (u8)value;
  for (; count >= sizeof(block); count -= sizeof(block), to += sizeof(block)) *(block *)to = filled;
  for (; count; count--) *to++ = (u8)value;
  return target;
}

void *memmove(void *target, const void *source, size_t count) {
  u8 *to = target;
  const u8 *from = source;
  if (to <= from)
    for (size_t i = 0; i < count; i++) to[i] = from[i];
  else
    for (size_t i = count; i; i--) to[i - 1] = from[i - 1];
  return target;
}

typedef unsigned long long u64;
typedef struct { u64 quotient, rest; } Division;

/* Shift and subtract, from the highest bit that the dividend has. */
static Division divide(u64 dividend, u64 divisor) {
  Division result = {0, 0};
  if (!dividend) return result;
  for (int bit = 63 - __builtin_clzll(dividend); bit >= 0; bit--) {
    result.rest = result.rest << 1 | (dividend >> bit & 1);
    if (result.rest >= divisor) result.rest -= divisor, result.quotient |= 1ull << bit;
  }
  return result;
}

static u64 magnitude(long long value) { return value < 0 ? -(u64)value : (u64)value; }
static long long with_sign(u64 value, int negative) { return (long long)(negative ? -value : value); }

int __hexagon_divsi3(int a, int b) { return (int)with_sign(divide(magnitude(a), magnitude(b)).quotient, (a ^ b) < 0); }
int __hexagon_modsi3(int a, int b) { return (int)with_sign(divide(magnitude(a), magnitude(b)).rest, a < 0); }
u32 __hexagon_udivsi3(u32 a, u32 b) { return (u32)divide(a, b).quotient; }
u32 __hexagon_umodsi3(u32 a, u32 b) { return (u32)divide(a, b).rest; }
long long __hexagon_divdi3(long long a, long long b) {
  return with_sign(divide(magnitude(a), magnitude(b)).quotient, (a ^ b) < 0);
}
long long __hexagon_moddi3(long long a, long long b) { return with_sign(divide(magnitude(a), magnitude(b)).rest, a < 0); }
u64 __hexagon_udivdi3(u64 a, u64 b) { return divide(a, b).quotient; }
u64 __hexagon_umoddi3(u64 a, u64 b) { return divide(a, b).rest; }

static long call(long number, long a, long b, long c, long d, long e, long f) {
  register long r0 asm("r0") = a;
  register long r1 asm("r1") = b;
  register long r2 asm("r2") = c;
  register long r3 asm("r3") = d;
  register long r4 asm("r4") = e;
  register long r5 asm("r5") = f;
  register long r6 asm("r6") = number;
  asm volatile("trap0(#1)" : "+r"(r0) : "r"(r6), "r"(r1), "r"(r2), "r"(r3), "r"(r4), "r"(r5) : "memory");
  return r0;
}

static void stop(int status) {
  for (;;) call(SYS_EXIT_GROUP, status, 0, 0, 0, 0, 0);
}

/* Reads all of it, or ends the process: normally where the stream ends between requests. */
static void receive(void *target, u32 count, int may_end) {
  u8 *to = target;
  while (count) {
    long got = call(SYS_READ, 0, (long)to, (long)count, 0, 0, 0);
    if (got <= 0) stop(may_end && got == 0 ? 0 : 2);
    to += got, count -= (u32)got, may_end = 0;
  }
}

static void answer(const void *source, u32 count) {
  const u8 *from = source;
  while (count) {
    long put = call(SYS_WRITE, 1, (long)from, (long)count, 0, 0, 0);
    if (put <= 0) stop(3);
    from += put, count -= (u32)put;
  }
}

static u32 receive_word(int may_end) {
  u32 word;
  receive(&word, sizeof word, may_end);
  return word;
}

/* Memory aligned to a vector, with room behind it that kernels may touch. */
static u8 *reserve(u32 count) {
  long place = call(SYS_MMAP, 0, (long)(count + SLACK), READ_WRITE, PRIVATE_ANONYMOUS, -1, 0);
  if (place < 0 && place > -4096) stop(4);
  return (u8 *)place;
}

#define COUNTER(name, word)                                   \
  u32 name(void) {                                     \
    register u32 value asm("r0");                             \
    asm volatile(".word " #word : "=r"(value) : : "memory");  \
    return value;                                             \
  }
COUNTER(packets, 0x6a14c000)
COUNTER(instructions, 0x6a15c000)
COUNTER(vector_instructions, 0x6a16c000)

static const u8 *inputs[LIMIT];
static u8 *outputs[LIMIT];
static u32 sizes[2 * LIMIT];

__attribute__((noreturn, used)) static void serve(void) {
  if (receive_word(1) != MAGIC) stop(5);
  u32 input_count = receive_word(0), output_count = receive_word(0);
  u32 arena_bytes = receive_word(0), constant_bytes = receive_word(0);
  if (input_count > LIMIT || output_count > LIMIT) stop(6);
  receive(sizes, 4 * (input_count + output_count), 0);
  for (u32 i = 0; i < input_count; i++) inputs[i] = reserve(sizes[i]);
  for (u32 i = 0; i < output_count; i++) outputs[i] = reserve(sizes[input_count + i]);
  u8 *arena = reserve(arena_bytes), *constants = reserve(constant_bytes);
  receive(constants, constant_bytes, 0);
  u32 magic = MAGIC;
  answer(&magic, sizeof magic);
  while (receive_word(1) == 1) {
    for (u32 i = 0; i < input_count; i++) receive((u8 *)inputs[i], sizes[i], 0);
    u32 packets_before = packets(), instructions_before = instructions(), vectors_before = vector_instructions();
    u32 reply[4];
    reply[0] = (u32)hexqdq_segment(inputs, outputs, constants, arena);
    reply[1] = packets() - packets_before;
    reply[2] = instructions() - instructions_before;
    reply[3] = vector_instructions() - vectors_before;
    answer(reply, sizeof reply);
    for (u32 i = 0; i < output_count; i++) answer(outputs[i], sizes[input_count + i]);
  }
  stop(0);
  __builtin_unreachable();
}

asm(".globl _start\n.type _start, @function\n_start:\n  r29 = and(r29, #-128)\n  call serve\n");
