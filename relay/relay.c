/*
 * The only way out of a sandbox without a network: listens on the sandbox's loopback address and carries every
 * connection to the egress proxy, which is outside. Two ways to get there:
 *
 *   relay PORT SOCKET   over a unix socket that is mounted into the sandbox (an engine on this very machine)
 *   relay PORT          over its own standard input and output, many connections in one (any engine, also a remote one)
 *
 * Where the socket can't be connected to (a virtual machine in between, a security module) it takes the second way, too.
 * The first frame, READY, says which: of connection 0 for the socket, 1 for frames. Then it listens.
 *
 * It decides nothing and knows nothing: what runs in the sandbox may talk to the proxy, through it or past it, and gains
 * nothing by taking its place. It ends when its standard input does: whoever started it is gone.
 *
 * No C library, so that it runs in any image: a few kilobytes, on x86-64 and on arm64. `scripts/relay.mjs` builds it.
 *
 * On standard input and output: frames of an 8 byte head {connection u32, length u24, kind u8}, little endian, and a body.
 * A side sends at most WINDOW bytes of a connection before the other has said (CREDIT) that it passed some on.
 */

typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long u64;

enum { READY = 0, OPEN = 1, DATA = 2, END = 3, RESET = 4, CREDIT = 5 };
enum { CONNECTIONS = 256, WINDOW = 1024 * 1024, FRAME = 64 * 1024 };

#define EINTR 4
#define EAGAIN 11
#define EADDRINUSE 98
#define POLLIN 1
#define POLLOUT 4
#define POLLERR 8
#define POLLHUP 16

#if defined(__x86_64__)
enum { SYS_read = 0, SYS_write = 1, SYS_close = 3, SYS_ppoll = 271, SYS_nanosleep = 35, SYS_socket = 41,
       SYS_connect = 42, SYS_accept4 = 288, SYS_shutdown = 48, SYS_bind = 49, SYS_listen = 50, SYS_setsockopt = 54,
       SYS_exit_group = 231, SYS_rt_sigaction = 13, SYS_kill = 62 };
static long call6(long n, long a, long b, long c, long d, long e, long f) {
  long result;
  register long r10 __asm__("r10") = d;
  register long r8 __asm__("r8") = e;
  register long r9 __asm__("r9") = f;
  __asm__ volatile("syscall" : "=a"(result) : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                   : "rcx", "r11", "memory");
  return result;
}
__asm__(".globl _start\n_start:\n  xor %ebp,%ebp\n  mov %rsp,%rdi\n  and $-16,%rsp\n  call start\n");
#elif defined(__aarch64__)
enum { SYS_read = 63, SYS_write = 64, SYS_close = 57, SYS_ppoll = 73, SYS_nanosleep = 101, SYS_socket = 198,
       SYS_connect = 203, SYS_accept4 = 242, SYS_shutdown = 210, SYS_bind = 200, SYS_listen = 201,
       SYS_setsockopt = 208, SYS_exit_group = 94, SYS_rt_sigaction = 134, SYS_kill = 129 };
static long call6(long n, long a, long b, long c, long d, long e, long f) {
  register long x8 __asm__("x8") = n;
  register long x0 __asm__("x0") = a;
  register long x1 __asm__("x1") = b;
  register long x2 __asm__("x2") = c;
  register long x3 __asm__("x3") = d;
  register long x4 __asm__("x4") = e;
  register long x5 __asm__("x5") = f;
  __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
  return x0;
}
__asm__(".globl _start\n_start:\n  mov x29,#0\n  mov x30,#0\n  mov x0,sp\n  bl start\n");
#else
#error "another processor needs its own system calls here"
#endif

static long call(long n, long a, long b, long c) { return call6(n, a, b, c, 0, 0, 0); }

/* The compiler calls these by itself. */
void *memcpy(void *to, const void *from, u64 count) {
  for (u64 i = 0; i < count; i++) ((u8 *)to)[i] = ((const u8 *)from)[i];
  return to;
}
void *memset(void *to, int value, u64 count) {
  for (u64 i = 0; i < count; i++) ((u8 *)to)[i] = (u8)value;
  return to;
}

struct pollfd { int fd; short events; short revents; };
struct sockaddr_in { unsigned short family; unsigned short port; u32 address; u8 zero[8]; };
struct sockaddr_un { unsigned short family; char path[108]; };

/* Bytes on their way: a ring that is written behind and read in front. */
struct ring { u32 from; u32 used; int ended; int told; u8 bytes[WINDOW]; };

struct connection {
  int used;
  int inside;        /* the program in the sandbox */
  int outside;       /* the unix socket, or -1: frames */
  u32 id;
  u32 credit;        /* bytes that may still be sent in frames */
  struct ring out;   /* inside -> outside; only with a unix socket */
  struct ring in;    /* outside -> inside */
};

static struct connection connections[CONNECTIONS];
static struct pollfd polled[2 + 2 * CONNECTIONS];
static struct sockaddr_un proxy;
static int framed;
static u32 last_id;
static u8 buffer[FRAME + 8];

static void quit(int code) { call(SYS_exit_group, code, 0, 0); for (;;) ; }

/* Standard output is read by the proxy at all times, so waiting for it ends. */
static void write_all(const u8 *bytes, u32 count) {
  while (count > 0) {
    long done = call(SYS_write, 1, (long)bytes, count);
    if (done == -EAGAIN) {
      struct pollfd wait = { 1, POLLOUT, 0 };
      call6(SYS_ppoll, (long)&wait, 1, 0, 0, 8, 0);
    } else if (done < 0 && done != -EINTR) quit(1);
    else if (done > 0) { bytes += done; count -= (u32)done; }
  }
}

/* The body stands in `buffer` behind the head's place. */
static void send_frame(u32 id, u8 kind, u32 length) {
  buffer[0] = (u8)id; buffer[1] = (u8)(id >> 8); buffer[2] = (u8)(id >> 16); buffer[3] = (u8)(id >> 24);
  buffer[4] = (u8)length; buffer[5] = (u8)(length >> 8); buffer[6] = (u8)(length >> 16);
  buffer[7] = kind;
  write_all(buffer, length + 8);
}

static void drop(struct connection *c, int tell) {
  if (!c->used) return;
  if (tell && framed) send_frame(c->id, RESET, 0);
  call(SYS_close, c->inside, 0, 0);
  if (c->outside >= 0) call(SYS_close, c->outside, 0, 0);
  c->used = 0;
}

/* Reads what fits. Returns 0 if the connection broke. */
static int fill(struct ring *r, int fd) {
  u32 at = (r->from + r->used) % WINDOW;
  u32 room = WINDOW - r->used;
  if (room > WINDOW - at) room = WINDOW - at;
  if (room == 0) return 1;
  long got = call(SYS_read, fd, (long)(r->bytes + at), room);
  if (got == -EAGAIN || got == -EINTR) return 1;
  if (got < 0) return 0;
  if (got == 0) r->ended = 1;
  r->used += (u32)(got > 0 ? got : 0);
  return 1;
}

/* Writes what can be written, and the end after the last byte. Returns the number of bytes, or -1. */
static long drain(struct ring *r, int fd) {
  long total = 0;
  while (r->used > 0) {
    u32 count = r->used < WINDOW - r->from ? r->used : WINDOW - r->from;
    long done = call(SYS_write, fd, (long)(r->bytes + r->from), count);
    if (done == -EINTR) continue;
    if (done == -EAGAIN) break;
    if (done <= 0) return -1;
    r->from = (r->from + (u32)done) % WINDOW;
    r->used -= (u32)done;
    total += done;
  }
  if (r->used == 0 && r->ended && !r->told) {
    r->told = 1;
    call(SYS_shutdown, fd, 1, 0);
  }
  return total;
}

static void accept_one(int listener) {
  long inside = call6(SYS_accept4, listener, 0, 0, 04000 | 02000000, 0, 0);
  if (inside < 0) return;
  struct connection *c = 0;
  for (int i = 0; i < CONNECTIONS && !c; i++) if (!connections[i].used) c = &connections[i];
  long outside = -1;
  if (c && !framed) {
    outside = call(SYS_socket, 1, 1 | 04000 | 02000000, 0);
    /* A unix socket connects at once, or its listener is not there or has too much to do. */
    if (outside >= 0 && call(SYS_connect, outside, (long)&proxy, sizeof proxy) < 0) {
      call(SYS_close, outside, 0, 0);
      outside = -1;
    }
  }
  if (!c || (!framed && outside < 0)) {
    call(SYS_close, inside, 0, 0);
    return;
  }
  int on = 1;
  call6(SYS_setsockopt, inside, 6, 1, (long)&on, sizeof on, 0);
  c->used = 1;
  c->inside = (int)inside;
  c->outside = (int)outside;
  c->id = ++last_id;
  c->credit = WINDOW;
  c->out.from = c->out.used = 0; c->out.ended = c->out.told = 0;
  c->in.from = c->in.used = 0; c->in.ended = c->in.told = 0;
  if (framed) send_frame(c->id, OPEN, 0);
}

/* Of one connection, what can be done now. */
static void serve_unix(struct connection *c, short inside, short outside) {
  const short readable = POLLIN | POLLERR | POLLHUP;
  if ((inside & readable) && !c->out.ended && !fill(&c->out, c->inside)) { drop(c, 0); return; }
  if ((outside & readable) && !c->in.ended && !fill(&c->in, c->outside)) { drop(c, 0); return; }
  if (drain(&c->out, c->outside) < 0 || drain(&c->in, c->inside) < 0) { drop(c, 0); return; }
  if (c->out.told && c->in.told) drop(c, 0);
}

static void give_credit(struct connection *c, u32 bytes) {
  buffer[8] = (u8)bytes; buffer[9] = (u8)(bytes >> 8); buffer[10] = (u8)(bytes >> 16); buffer[11] = (u8)(bytes >> 24);
  send_frame(c->id, CREDIT, 4);
}

static void push_in(struct connection *c) {
  long done = drain(&c->in, c->inside);
  if (done < 0) { drop(c, 1); return; }
  if (done > 0) give_credit(c, (u32)done);
  if (c->out.ended && c->in.told) drop(c, 0);
}

static void serve_framed(struct connection *c, short inside) {
  if ((inside & (POLLIN | POLLERR | POLLHUP)) && !c->out.ended && c->credit > 0) {
    u32 most = c->credit < FRAME ? c->credit : FRAME;
    long got = call(SYS_read, c->inside, (long)(buffer + 8), most);
    if (got < 0 && got != -EAGAIN && got != -EINTR) { drop(c, 1); return; }
    if (got > 0) { c->credit -= (u32)got; send_frame(c->id, DATA, (u32)got); }
    if (got == 0) { c->out.ended = 1; send_frame(c->id, END, 0); }
  }
  push_in(c);
}

/* What the proxy says, in pieces of any size. */
static u8 incoming[FRAME + 8];
static u32 have;

static void take_frame(const u8 *head, u8 *body, u32 length) {
  u32 id = head[0] | head[1] << 8 | head[2] << 16 | (u32)head[3] << 24;
  struct connection *c = 0;
  for (int i = 0; i < CONNECTIONS && !c; i++) if (connections[i].used && connections[i].id == id) c = &connections[i];
  if (!c) return;
  switch (head[7]) {
    case DATA:
      if (length > WINDOW - c->in.used) { drop(c, 1); return; }
      for (u32 i = 0; i < length;) {
        u32 at = (c->in.from + c->in.used) % WINDOW;
        u32 count = length - i < WINDOW - at ? length - i : WINDOW - at;
        memcpy(c->in.bytes + at, body + i, count);
        c->in.used += count;
        i += count;
      }
      push_in(c);
      break;
    case END: c->in.ended = 1; push_in(c); break;
    case RESET: drop(c, 0); break;
    case CREDIT:
      if (length == 4) c->credit += body[0] | body[1] << 8 | body[2] << 16 | (u32)body[3] << 24;
      break;
  }
}

static void read_frames(void) {
  long got = call(SYS_read, 0, (long)(incoming + have), sizeof incoming - have);
  if (got == -EAGAIN || got == -EINTR) return;
  if (got <= 0) quit(0);
  have += (u32)got;
  u32 at = 0;
  while (have - at >= 8) {
    u32 length = incoming[at + 4] | incoming[at + 5] << 8 | (u32)incoming[at + 6] << 16;
    if (length > FRAME) quit(2);
    if (have - at < 8 + length) break;
    take_frame(incoming + at, incoming + at + 8, length);
    at += 8 + length;
  }
  for (u32 i = at; i < have; i++) incoming[i - at] = incoming[i];
  have -= at;
}

static int listen_on(unsigned short port) {
  int on = 1;
  int listener = (int)call(SYS_socket, 2, 1 | 04000 | 02000000, 0);
  struct sockaddr_in here = { 2, (unsigned short)(port << 8 | port >> 8), 0x0100007f, { 0 } };
  call6(SYS_setsockopt, listener, 1, 2, (long)&on, sizeof on, 0);
  for (int tries = 0; call(SYS_bind, listener, (long)&here, sizeof here) == -EADDRINUSE; tries++) {
    long moment[2] = { 0, 100000000 };
    if (tries == 50) quit(98);
    call(SYS_nanosleep, (long)moment, 0, 0);
  }
  if (call(SYS_listen, listener, 128, 0) < 0) quit(98);
  return listener;
}

static void wait_and_serve(int listener) {
  int count = 2;
  polled[0] = (struct pollfd){ 0, POLLIN, 0 };
  polled[1] = (struct pollfd){ listener, POLLIN, 0 };
  for (int i = 0; i < CONNECTIONS; i++) {
    struct connection *c = &connections[i];
    if (!c->used) continue;
    int more = framed ? c->credit > 0 : c->out.used < WINDOW;
    short inside = (short)((!c->out.ended && more ? POLLIN : 0) | (c->in.used > 0 ? POLLOUT : 0));
    short outside = (short)((!c->in.ended && c->in.used < WINDOW ? POLLIN : 0) | (c->out.used > 0 ? POLLOUT : 0));
    /* One that is asked nothing is not polled: it would report its hang-up for ever. */
    polled[count] = (struct pollfd){ inside ? c->inside : -1, inside, 0 };
    polled[count + 1] = (struct pollfd){ outside && c->outside >= 0 ? c->outside : -1, outside, 0 };
    count += 2;
  }
  if (call6(SYS_ppoll, (long)polled, count, 0, 0, 8, 0) < 0) return;
  for (int i = 0, at = 2; i < CONNECTIONS && at < count; i++) {
    struct connection *c = &connections[i];
    if (!c->used) continue;
    short inside = polled[at].revents, outside = polled[at + 1].revents;
    at += 2;
    if (!inside && !outside) continue;
    if (framed) serve_framed(c, inside);
    else serve_unix(c, inside, outside);
  }
  if (polled[0].revents) {
    if (framed) read_frames();
    else if (call(SYS_read, 0, (long)buffer, FRAME) == 0) quit(0);
  }
  if (polled[1].revents) accept_one(listener);
}

__attribute__((used)) void start(long *stack) {
  long count = stack[0];
  char **arguments = (char **)(stack + 1);
  u32 port = 0;
  if (count < 2) quit(64);
  for (const char *digit = arguments[1]; *digit; digit++) port = port * 10 + (u32)(*digit - '0');
  framed = count < 3;
  proxy.family = 1;
  for (int i = 0; !framed && arguments[2][i] && i < 107; i++) proxy.path[i] = arguments[2][i];
  /* Writing to who has gone is an error to be read, not a signal to die of. */
  struct { void *handler; u64 flags; void *restorer; u64 mask; } ignore = { (void *)1, 0, 0, 0 };
  call6(SYS_rt_sigaction, 13, (long)&ignore, 0, 8, 0, 0);
  if (!framed) {
    long probe = call(SYS_socket, 1, 1 | 02000000, 0);
    framed = call(SYS_connect, probe, (long)&proxy, sizeof proxy) < 0;
    call(SYS_close, probe, 0, 0);
  }
  /* The newest relay is the one that counts: all others are processes of this user, which is nobody else's. */
  call(SYS_kill, -1, 15, 0);
  int listener = listen_on((unsigned short)port);
  send_frame((u32)framed, READY, 0);
  for (;;) wait_and_serve(listener);
}
